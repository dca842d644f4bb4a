package counters_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// Top with a filter equals the filtered Top of all keys, over many keys in random order.
func TestTopOfAFilter(t *testing.T) {
	all := must.Get(counters.New(counters.Config{Now: time.Now}))(t)
	c := must.Get(all.Create("mine"))(t)
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 6000 {
		key := fmt.Sprintf("198.51.%d.%d", rng.IntN(4), rng.IntN(150))
		if rng.IntN(3) == 0 {
			key = fmt.Sprintf("/page/%d", rng.IntN(300))
		}
		row, err := c.Key.Join(nil, key)
		if err == nil {
			err = c.Add(row, rng.Uint64N(50)+1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	top, _, err := c.Top(1000, time.Hour, keys.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ pattern, network string }{
		{"198.51.2.*", ""}, {"", "198.51.2.0/24"}, {"/page/*", ""}, {"*", ""}, {"*7", "198.51.0.0/23"}, {"none", ""}, {"", "2001:db8::/32"},
	} {
		filter := must.Get(keys.ParseFilter(f.pattern, f.network))(t)
		var want []api.KeyCount
		for _, k := range top {
			in := f.network == "" || f.network == "198.51.2.0/24" && k.Values()[0][:min(9, len(k.Values()[0]))] == "198.51.2." ||
				f.network == "198.51.0.0/23" && (k.Values()[0][:min(9, len(k.Values()[0]))] == "198.51.0." || k.Values()[0][:min(9, len(k.Values()[0]))] == "198.51.1.")
			if in && (f.pattern == "" || keys.Glob(f.pattern, k.Values()[0])) {
				want = append(want, k)
			}
		}
		for _, n := range []int{1, 20, 1000} {
			got, _, err := c.Top(n, time.Hour, filter)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want[:min(n, len(want))]) {
				t.Errorf("%v, the first %d: %v, %v; want %v", f, n, got, err, want[:min(n, len(want))])
			}
		}
	}
}
