package keytable

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDumpReader(t *testing.T) {
	b := binary.AppendUvarint(nil, math.MaxUint64)
	b = binary.AppendVarint(b, math.MinInt64)
	b = AppendDumpBytes(b, "key")
	b = append(b, 7, 5)
	r := NewDumpReader(b)
	if u, v, k, c, n := r.Uvarint(), r.Varint(), string(r.Bytes(3)), r.Byte(), r.UpTo(5); u != math.MaxUint64 || v != math.MinInt64 || k != "key" || c != 7 || n != 5 || r.Len() != 0 || r.Failed() {
		t.Errorf("read %d %d %q %d %d, %d left", u, v, k, c, n, r.Len())
	}
	for name, bad := range map[string]func(r *DumpReader) bool{
		"nothing":   func(r *DumpReader) bool { r.rest = nil; return r.Byte() == 0 },
		"no number": func(r *DumpReader) bool { r.rest = []byte{0x80}; return r.Uvarint() == 0 },
		"long zero": func(r *DumpReader) bool { r.rest = []byte{0x80, 0}; return r.Uvarint() == 0 },
		"too much":  func(r *DumpReader) bool { r.rest = []byte{6}; return r.UpTo(5) == 0 },
		"too long":  func(r *DumpReader) bool { r.rest = []byte{4, 'a', 'b', 'c', 'd'}; return r.Bytes(3) == nil },
		"too short": func(r *DumpReader) bool { r.rest = []byte{4, 'a', 'b', 'c'}; return r.Bytes(9) == nil },
	} {
		r := NewDumpReader([]byte{1, 2, 3})
		if !bad(r) || !r.Failed() || r.Len() != 0 || r.Uvarint() != 0 {
			t.Errorf("%s: was read", name)
		}
	}
}

// TestLogGoesOnAsBefore adds to and takes from a log and one that was restored
// from it, of all sizes and in blocks that are wrapped around.
func TestLogGoesOnAsBefore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	times := func(b *Blocks, l []uint64) (all []int64) {
		for i := range b.Len(l) {
			all = append(all, b.At(l, i))
		}
		return all
	}
	for bound := 1; bound < 300; bound += 1 + bound/7 {
		b := NewBlocks(bound, 3, NewBudget(1<<40))
		l := make([]uint64, b.Words())
		now := rnd.Int64N(4e18) - 2e18
		for range 20 * bound {
			now += rnd.Int64N(10)
			b.Add(l, now)
			switch rnd.IntN(8) {
			case 0:
				b.Expire(l, now-rnd.Int64N(30*int64(bound)))
			case 1:
				again, other := NewBlocks(bound, 3, NewBudget(1<<40)), make([]uint64, b.Words())
				r := NewDumpReader(b.AppendLog(nil, l, now+5))
				again.ReadLog(r, other, now+5, now)
				third := make([]uint64, b.Words())
				if !again.CopyLog(third, again, other) || r.Failed() || r.Len() > 0 {
					t.Fatal("the log is not read")
				}
				for _, o := range [][]uint64{other, third} {
					if !slices.Equal(times(b, l), times(again, o)) || b.Lost(l) != again.Lost(o) || b.Len(l) > 0 && b.Newest(l) != again.Newest(o) {
						t.Fatalf("bound %d: %v has become %v", bound, times(b, l), times(again, o))
					}
				}
			}
		}
	}
}
