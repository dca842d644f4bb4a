package keytable_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// TestConcurrentSlab has goroutines take and give back blocks: each belongs to one goroutine while it is held.
func TestConcurrentSlab(t *testing.T) {
	s := keytable.NewSlab(5, keytable.NewBudget(1<<20))
	var wg sync.WaitGroup
	for g := range uint64(4) {
		rnd := rand.New(rand.NewPCG(g, 1))
		wg.Go(func() {
			var held []uint32
			for range 3000 {
				if rnd.IntN(2) == 0 || len(held) == 0 {
					n, ok := s.Alloc()
					if !ok {
						t.Error("no block")
						return
					}
					for i := range s.At(n) {
						s.At(n)[i] = g + 1
					}
					held = append(held, n)
					continue
				}
				n := held[len(held)-1]
				held = held[:len(held)-1]
				for _, word := range s.At(n) {
					if word != g+1 {
						t.Errorf("a block of %d has %d", g+1, word)
					}
				}
				s.Free(n)
			}
			for _, n := range held {
				s.Free(n)
			}
		})
	}
	wg.Wait()
	if s.Len() != 0 {
		t.Errorf("%d blocks are held, all were given back", s.Len())
	}
}

func TestSlabKeepsTheBudget(t *testing.T) {
	for _, words := range []int{1, 5, 500, 5000} {
		budget := keytable.NewBudget(100_000)
		s := keytable.NewSlab(words, budget)
		n := 0
		for ; ; n++ {
			if _, ok := s.Alloc(); !ok {
				break
			}
		}
		if used := budget.Used(); used > 100_000 || n*words*8 > 100_000 || n*words*8 < 40_000 {
			t.Errorf("%d blocks of %d words, %d bytes taken", n, words, used)
		}
		s.Free(0)
		if block, ok := s.Alloc(); block != 0 || !ok {
			t.Errorf("after Free: %d, %t", block, ok)
		}
	}
}

// The memory that a Slab takes from the budget follows its use: by whole chunks, and except for their places in the lists.
func TestSlabGivesChunksBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	for _, words := range []int{1, 5, 200, 5000} {
		const limit = 1 << 20
		budget := keytable.NewBudget(limit)
		s := keytable.NewSlab(words, budget)
		for round := range 3 {
			var held []uint32
			for n, ok := s.Alloc(); ok; n, ok = s.Alloc() {
				s.At(n)[0] = uint64(n) + 7
				held = append(held, n)
			}
			if len(held)*words*8 < limit/2 || budget.Used() > limit {
				t.Errorf("round %d: %d blocks of %d words, %d bytes taken", round, len(held), words, budget.Used())
			}
			rnd.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			for _, n := range held {
				if got := s.At(n)[0]; got != uint64(n)+7 {
					t.Fatalf("block %d has %d, which is another's", n, got)
				}
				s.Free(n)
			}
			if used := budget.Used(); used > limit/20 || s.Len() != 0 {
				t.Errorf("round %d: %d bytes taken, %d blocks in use after all %d of %d words were given back", round, used, s.Len(), len(held), words)
			}
		}
	}
}

// Concurrent takes from a Budget never exceed it.
func TestConcurrentBudget(t *testing.T) {
	const limit = 1000
	b := keytable.NewBudget(limit)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		rnd := rand.New(rand.NewPCG(g, 2))
		wg.Go(func() {
			taken := int64(0)
			for range 20_000 {
				n := rnd.Int64N(400)
				if b.Take(n, 100) {
					taken += n
				}
				if used := b.Used(); used > limit-100 || used < 0 {
					t.Errorf("%d of %d taken with 100 kept", used, limit)
				}
				if rnd.IntN(2) == 0 {
					b.Give(taken)
					taken = 0
				}
			}
			b.Give(taken)
		})
	}
	wg.Wait()
	if b.Used() != 0 || !b.Take(limit, 0) || b.Take(1, 0) || b.Limit() != limit {
		t.Errorf("%d taken at last", b.Used())
	}
}
