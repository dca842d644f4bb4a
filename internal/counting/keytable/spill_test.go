package keytable_test

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestSpill gives blocks to records and takes them back at random, and compares
// their contents with the written ones.
func TestSpill(t *testing.T) {
	rnd := randtest.New(t)
	for _, words := range []int{1, 8, 17, 40} {
		b := keytable.NewSpill(3, words, unlimited())
		type record struct{ l, block []uint64 }
		records := make([]record, 50)
		for i := range records {
			records[i].l = make([]uint64, b.Words())
		}
		spilled, ever := 0, 0
		for range 20_000 {
			r := &records[rnd.IntN(len(records))]
			low := uint64(rnd.Uint32())
			r.l[0] = r.l[0]>>32<<32 | low
			switch spills := b.Spilled(r.l); {
			case spills != (r.block != nil):
				t.Fatalf("Spilled is %t", spills)
			case !spills:
				if !b.Spill(r.l) || len(b.Block(r.l)) != words {
					t.Fatal("no memory")
				}
				spilled++
				r.block = slices.Clone(b.Block(r.l))
			case rnd.IntN(6) == 0:
				if b.View().Clear(slices.Clone(r.l)); b.InUse() != spilled {
					t.Fatal("a copy has given its block back")
				}
				if b.Clear(r.l); r.l[0] != 0 {
					t.Fatalf("cleared, the first word is %x", r.l[0])
				}
				spilled--
				r.block = nil
			default:
				if got := b.Block(r.l); !slices.Equal(got, r.block) {
					t.Fatalf("the block is %v, want %v", got, r.block)
				}
				for i := range r.block {
					r.block[i] = rnd.Uint64()
				}
				copy(b.Block(r.l), r.block)
			}
			if r.block != nil && r.l[0]&(1<<32-1) != low {
				t.Fatalf("the owner's bits are %x, want %x", r.l[0]&(1<<32-1), low)
			}
			// A free block of an earlier chunk is taken first, though it may be a fresh one.
			const chunk = 512
			if ever = max(ever, spilled); b.InUse() != spilled || b.Ever() > ever+chunk {
				t.Fatalf("%d blocks in use, want %d; %d were taken, want at most %d", b.InUse(), spilled, b.Ever(), ever+chunk)
			}
		}
	}
}

// TestSpillKeepsTheBudget spills until there is no memory: a record that gets no
// block does not change.
func TestSpillKeepsTheBudget(t *testing.T) {
	const limit = 100_000
	budget := keytable.NewBudget(limit)
	b := keytable.NewSpill(3, 16, budget)
	var last []uint64
	n := 0
	for ; ; n++ {
		l := []uint64{7, 8, 9, 10}
		if !b.Spill(l) {
			if !slices.Equal(l, []uint64{7, 8, 9, 10}) || b.Spilled(l) {
				t.Fatalf("a record without memory has changed: %x", l)
			}
			break
		}
		last = l
	}
	if used := budget.Used(); used > limit || n*16*8 < limit/2 || int64(n)*16*8 > used {
		t.Errorf("%d blocks in %d bytes of %d", n, used, limit)
	}
	b.Clear(last)
	if !b.Spill(make([]uint64, b.Words())) {
		t.Error("no memory although a block is free")
	}
}
