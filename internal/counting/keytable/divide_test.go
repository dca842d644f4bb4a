package keytable_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// watched is a Policy that evicts the oldest record, and counts how often
// records are inspected.
type watched struct {
	ages
	looks int
}

func (w *watched) Expired(r keytable.Record) bool  { w.looks++; return w.ages.Expired(r) }
func (w *watched) Weight(r keytable.Record) uint64 { w.looks++; return r.Words()[0] }

// At the budget a new key costs about the same number of visited records and evictions whatever the lengths of the keys
// before it were, also if these change all the time.
func TestTableCostOfOtherLengths(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	bytes, keys := int64(1<<20), 15_000
	if testing.Short() {
		bytes, keys = bytes/4, keys/4
	}
	budget, policy, n := keytable.NewBudget(bytes), new(watched), uint64(0)
	in := must.Get(keytable.New(oneSeed, keytable.Config{Words: 5, Budget: budget, Policy: policy}))(t)
	cost := func(lengths ...int) (looks float64, held int) {
		before := policy.looks
		for range keys {
			n++
			key := fmt.Sprintf("%08x", n)
			key += strings.Repeat("k", lengths[rng.IntN(len(lengths))]-len(key))
			if !put(in, key, n, forever) {
				t.Fatalf("no memory for a key of %d bytes", len(key))
			}
		}
		if budget.Used() > budget.Limit() {
			t.Fatalf("%d bytes of %d", budget.Used(), budget.Limit())
		}
		return float64(policy.looks-before) / float64(keys), in.Len()
	}
	_, _ = cost(15)
	usual, _ := cost(15)
	for _, lengths := range [][]int{{39}, {15}, {15, 39}, {300}, {8, 500}, {15}, {1000}, {15}} {
		looks, held := cost(lengths...)
		t.Logf("lengths %v: %d keys, %.1f looks for a new key, usually %.1f", lengths, held, looks, usual)
		if looks > 2*usual {
			t.Errorf("lengths %v: %.1f looks at records for a new key, %.1f if all have 15 bytes", lengths, looks, usual)
		}
	}
	looks := 0.0
	for range 40 { // the runs are shorter than the average length of new keys takes
		for _, length := range []int{15, 39, 200} {
			before := policy.looks
			for range 16 * 40 {
				n++
				key := fmt.Sprintf("%08x", n)
				put(in, key+strings.Repeat("k", length-len(key)), n, forever)
			}
			looks += float64(policy.looks-before) / (16 * 40 * 120)
		}
	}
	t.Logf("lengths in turn: %d keys, %.1f looks", in.Len(), looks)
	if looks > 3*usual {
		t.Errorf("%.1f looks at records for a new key if lengths take turns, %.1f if all have 15 bytes", looks, usual)
	}
}

// A key for which a group can never have memory evicts nothing.
func TestTableKeyTooLongForItsGroup(t *testing.T) {
	policy := new(watched)
	budget := keytable.NewBudget(1 << 20)
	in := must.Get(keytable.New(oneSeed, keytable.Config{Words: 5, Budget: budget, Policy: policy}))(t)
	if !budget.Take(budget.Limit()-budget.Used(), 0) {
		t.Fatal("the budget is not that of the table")
	}
	for i := range uint64(10_000) {
		put(in, fmt.Sprint("short ", i), i, forever)
	}
	held, gone := in.Len(), in.Stats()
	if held < 16*2 {
		t.Fatalf("%d keys in 16 groups", held)
	}
	for i := range uint64(1000) {
		if put(in, fmt.Sprint(strings.Repeat("a key that is kept beside the records ", 10), i), i, forever) {
			t.Fatal("there is memory for a long key")
		}
	}
	if in.Len() != held || in.Stats().Evicted != gone.Evicted {
		t.Errorf("%d keys, then %d: keys were evicted for nothing", held, in.Len())
	}
}
