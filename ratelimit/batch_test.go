package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A batches is a store that behaves like one behind a network. It records the size of each batch, and fails on demand.
type batches struct {
	*ratelimit.Memory
	sizes []int
	fail  func(call int) error
}

func (b *batches) Decide(ctx context.Context, batch []*ratelimit.Request) {
	b.sizes = append(b.sizes, len(batch))
	if err := b.fail(len(b.sizes)); err != nil {
		for _, r := range batch {
			r.Err = err
		}
		return
	}
	b.Memory.Decide(ctx, batch)
}

// TestTakeAll compares decisions made in one batch with decisions made one after the other: in memory, and in a store
// behind a network, which has moved to other rules every third time.
func TestTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}},
			limitedTo("path", 3, "path"), limitedTo("pair", 2, "client", "path"),
			ratelimit.Rule{Name: "ban", Key: match.MustKey("client"), Ban: &ratelimit.Ban{After: 9, Span: time.Minute, For: time.Hour}}))(t)
		remote := &batches{Memory: memoryStore(t, set).(*ratelimit.Memory), fail: func(call int) error {
			if call%3 == 0 {
				return ratelimit.ErrStale
			}
			return nil
		}}
		alone := ratelimit.Over(set, memoryStore(t, set))
		together := []*ratelimit.Limiter{ratelimit.Over(set, memoryStore(t, set)), ratelimit.Over(set, remote)}
		random := randtest.New(t)
		for range 100 {
			queries := make([]batch.Query, random.IntN(400))
			var want []ratelimit.Decision
			for i := range queries {
				q := &queries[i]
				q.Cost, q.Peek = random.Uint64N(3), random.IntN(4) == 0
				client, path := fmt.Sprint("192.0.2.", random.IntN(10)), fmt.Sprint("/", random.IntN(9))
				switch random.IntN(6) {
				case 0:
					q.Rule, q.Key = "path", []string{path}
				case 1:
					q.Rule, q.Key = "pair", []string{client, path}
				case 2:
					q.Rule, q.Key = "none", []string{path}
				case 3:
					q.Rule, q.Key = "pair", []string{path} // not a key
				case 4:
					q.Event = new(match.Event) // no rule matches
				default:
					q.Event = new(match.Event)
					q.Event.SetString(match.Client, client)
					q.Event.SetString(match.Path, path)
				}
				want = append(want, one(t, alone, q))
			}
			before := len(remote.sizes)
			for _, l := range together {
				got := l.Internal().TakeAll(queries, nil)
				for i := range want {
					if !reflect.DeepEqual(got[i], want[i]) {
						t.Fatalf("query %d of %d, %+v:\n together %+v\n alone    %+v", i, len(queries), queries[i], got[i], want[i])
					}
				}
			}
			for _, n := range remote.sizes[before:] {
				if n > 256 || n == 0 {
					t.Fatalf("the store got %d requests at a time", n)
				}
			}
			if calls := len(remote.sizes) - before; calls > 4 {
				t.Fatalf("%d queries were %d batches", len(queries), calls)
			}
			time.Sleep(time.Duration(random.IntN(30)) * time.Second)
		}
	})
}

// one decides q by the verbs for one decision.
func one(t *testing.T, l *ratelimit.Limiter, q *batch.Query) ratelimit.Decision {
	t.Helper()
	switch {
	case q.Event != nil && q.Peek:
		return l.PeekN(l.Now(), q.Event, q.Cost)
	case q.Event != nil:
		return l.TakeAt(l.Now(), q.Event, q.Cost)
	}
	r, err := l.Rule(q.Rule)
	switch {
	case err != nil:
		return ratelimit.Decision{Allowed: true, Unmatched: true, Err: err}
	case q.Peek:
		return r.PeekN(l.Now(), q.Cost, q.Key...)
	}
	return r.TakeAt(l.Now(), q.Cost, q.Key...)
}

// TestTakeAllWithoutStore decides a batch while the store fails: each query by its rules, and queries that need no store as
// always.
func TestTakeAllWithoutStore(t *testing.T) {
	down := errors.New("the store is down")
	open, closed := limitedTo("open", 1, "path"), limitedTo("closed", 1, "path")
	open.OnStoreFailure, closed.OnStoreFailure = ratelimit.FailOpen, ratelimit.FailClosed
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, open, closed, limitedTo("local", 1, "path")))(t)
	l := ratelimit.Over(set, &batches{Memory: memoryStore(t, set).(*ratelimit.Memory), fail: func(int) error { return down }})
	var queries []batch.Query
	for _, rule := range []string{"open", "closed", "local", "local", "none"} {
		queries = append(queries, batch.Query{Rule: rule, Key: []string{"/"}, Cost: 1})
	}
	got := l.Internal().TakeAll(queries, make([]ratelimit.Decision, 1))
	for i, want := range []bool{false, true, false, true, false, true} { // the first was there before
		d := got[i]
		if d.Allowed != want || (i > 0 && i < 5) != errors.Is(d.Err, down) {
			t.Errorf("decision %d: %+v; want allowed %v", i, d, want)
		}
	}
}

// limitedTo returns a rule that allows n an hour.
func limitedTo(name string, n uint64, fields ...string) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: match.MustKey(fields...), Limits: []ratelimit.Limit{per(n, time.Hour)}}
}
