package latelyredis_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestKilled kills the server in the middle of a window, with three nodes under balanced load:
// together they allow at most 1.1 times the limit in that window.
func TestKilled(t *testing.T) {
	for _, n := range []uint64{100, 1000} {
		s, config := own(t), prefixed()
		r := limited("r", match.MustKey("path"), ratelimit.Sliding, n)
		r.Limits[0].Span = time.Hour
		rules := set(t, r)
		var limiters []*ratelimit.Limiter
		var stores []*latelyredis.Store
		for range 3 {
			store := newStore(t, s.client(t), rules, config)
			l, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			limiters, stores = append(limiters, l), append(stores, store)
		}
		allKnown := func() bool {
			return !slices.ContainsFunc(stores, func(s *latelyredis.Store) bool { return s.Nodes() != 3 })
		}
		var e match.Event
		e.SetString(match.Path, "/")
		allowed, fallen := uint64(0), uint64(0)
		for i := range 2 * n {
			if i == n/4 {
				eventually(t, "each node knows of the others", allKnown)
				s.Process().Kill()
			}
			for _, l := range limiters {
				d := l.Take(&e)
				if d.Allowed {
					allowed++
				}
				if d.Err != nil {
					fallen++
				}
			}
		}
		if fallen == 0 || allowed > n*11/10 || allowed < n*9/10 {
			t.Errorf("limit %d: %d allowed, %d by the nodes alone, want about the limit, and at most 1.1 times it", n, allowed, fallen)
		}
	}
}

// TestAskedTime has Redis away: the time of a request is that of the caller, who decides instead.
func TestAskedTime(t *testing.T) {
	s := own(t)
	rules := anyRules(t)
	store, err := latelyredis.NewQuiet(s.client(t), rules, prefixed())
	if err != nil {
		t.Fatal(err)
	}
	s.Process().Kill()
	const asked = 12345
	r := &latelyredis.Request{Set: rules, Now: asked, Cost: 1, Subjects: []latelyredis.Subject{about(0, "k")}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if store.Decide(ctx, []*latelyredis.Request{r}); r.Err == nil || r.Now != asked {
		t.Errorf("%v at %d, want an error, and the time that was asked for, %d", r.Err, r.Now, asked)
	}
}
