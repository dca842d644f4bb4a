package keytable

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestImportedLogContinues adds to and takes from a log and one that was restored
// from it, of all sizes and in blocks that are wrapped around.
func TestImportedLogContinues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
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
			b.Add(l, now, 1)
			switch rnd.IntN(8) {
			case 0:
				b.Expire(l, now-rnd.Int64N(30*int64(bound)))
			case 1:
				again, other := NewBlocks(bound, 3, NewBudget(1<<40)), make([]uint64, b.Words())
				r := snapshot.NewReader(b.AppendLog(nil, l, now+5))
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
