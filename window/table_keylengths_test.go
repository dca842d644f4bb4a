package window

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// A full table holds about as many keys of a mix of lengths as a table that never held others.
func TestTableHoldsKeysAfterOtherLengths(t *testing.T) {
	mixes := [][]int{{11, 13, 15}, {39}, {12, 15, 39, 39}, {20, 100, 300}, {1000}, {8, 8, 8, 500}}
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, x := range []struct {
		c       TableConfig
		windows []Window
	}{
		{TableConfig{Budget: 512 << 10}, []Window{{Span: time.Hour, Slot: time.Hour}}},
		{TableConfig{Budget: 2 << 20}, []Window{{Span: time.Hour, Slot: 6 * time.Minute}}},
	} {
		n := 0
		fill := func(tb *Table, mix []int) (held int) {
			held, before := tb.Len(), tb.Stats().Evicted
			for brought := 0; brought < 4*held || tb.Stats().Evicted-before < uint64(held) || held == 0; held = tb.Len() {
				for range 100 {
					n++
					key := fmt.Sprintf("%08x", n)
					key += strings.Repeat("k", mix[rng.IntN(len(mix))]-len(key))
					tb.AddAt(time.Unix(1_000_000, int64(n)*1000), key, 1)
				}
				brought += 100
			}
			return held
		}
		fills := 4
		if testing.Short() {
			x.c.Budget, fills = x.c.Budget/4, 2
		}
		tb := mustTable(t, x.c, x.windows...)
		var before [][]int
		for range fills {
			mix := mixes[rng.IntN(len(mixes))]
			held, fresh := fill(tb, mix), fill(mustTable(t, x.c, x.windows...), mix)
			t.Logf("%+v: %d keys of %v after %v, %d of them alone: ratio %.2f", x.c, held, mix, before, fresh, float64(held)/float64(fresh))
			if held < fresh*8/10 {
				t.Errorf("%+v: %d keys of %v are held after %v, %d if only these come", x.c, held, mix, before, fresh)
			}
			before = append(before, mix)
		}
	}
}
