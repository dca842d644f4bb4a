package latelyredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// An outage is three nodes under balanced load whose server is killed: each has an event of each rule at each time. Bans
// have begun on one node each before.
type outage struct {
	limiters []*ratelimit.Limiter
	stores   []*latelyredis.Store
	limit    ratelimit.Limit
	times    []time.Time // at which one was allowed
	fallen   int         // decisions by a node alone
}

// newOutage starts the nodes, and begins a ban on each, which all receive.
func newOutage(t testing.TB, s *server, n uint64) (o *outage, rules *ratelimit.Set, config latelyredis.Config) {
	t.Helper()
	local, closed := limited("local", match.MustKey("path"), ratelimit.Sliding, n), limited("closed", match.MustKey("user"), ratelimit.GCRA, 1e6)
	open := limited("open", match.MustKey("method"), ratelimit.Exact, 1)
	local.Limits[0].Span, open.Limits[0].Span = 10*time.Second, time.Hour
	closed.OnStoreFailure, open.OnStoreFailure = ratelimit.FailClosed, ratelimit.FailOpen
	rules, config = set(t, local, closed, open, banning("flood", match.MustKey("host"), 0)), prefixed()
	o = &outage{limit: local.Limits[0]}
	for range 3 {
		store := newStore(t, s.client(t), rules, config)
		l := limiterOf(t, rules, store)
		o.limiters, o.stores = append(o.limiters, l), append(o.stores, store)
	}
	allKnown(t, o.stores)
	for i, l := range o.limiters {
		l.Take(event(match.Host, banned(i)))
	}
	allCopied(t, o.stores, "flood", banned(0), banned(1), banned(2))
	return o, rules, config
}

// banned returns the host whose ban has begun on node i.
func banned(i int) string { return fmt.Sprintf("flooder-%d", i) }

func event(f match.Field, value string) *match.Event {
	e := new(match.Event)
	e.SetString(f, value)
	return e
}

// tick has an event of each rule decided by each node. away means that Redis must decide none.
func (o *outage) tick(t testing.TB, now time.Time, away bool) {
	t.Helper()
	for i, l := range o.limiters {
		d := l.TakeAt(now, event(match.Path, "/"), 1)
		if d.Allowed {
			o.times = append(o.times, now)
		}
		if d.Err != nil {
			o.fallen++
		} else if away {
			t.Fatalf("node %d: %+v while the server is away", i, d)
		}
		for k := range o.limiters {
			if d := l.TakeAt(now, event(match.Host, banned(k)), 1); d.Allowed || d.Err != nil {
				t.Fatalf("node %d: %+v about %s, want that its copy of the ban refuses", i, d, banned(k))
			}
		}
		if d := l.TakeAt(now, event(match.User, "ada"), 1); d.Allowed == away {
			t.Fatalf("node %d: %+v by a rule with closed, the server away: %v", i, d, away)
		}
		if !away {
			continue
		}
		if d := l.TakeAt(now, event(match.Method, "GET"), 1); !d.Allowed || d.Err == nil {
			t.Fatalf("node %d: %+v by a rule with open while the server is away", i, d)
		}
	}
}

// most returns the most that was allowed in a window.
func (o *outage) most() (most int) {
	first := 0
	for i, at := range o.times {
		for !o.times[first].After(at.Add(-o.limit.Span)) {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// TestKilled kills the server for a minute with three nodes under balanced load: together they allow at
// most 1.1 times the limit in each window, also in those in which it was killed, and not much less than the
// limit. Bans hold all the time, on all nodes, and are written again when the server is back, with nothing.
// The minute passes in the times of the events, and with LATELY_LONG for the server as well.
func TestKilled(t *testing.T) {
	t.Parallel()
	const away, every = time.Minute, 10 * time.Millisecond
	for _, n := range []uint64{100, 1000} {
		s := own(t)
		o, rules, config := newOutage(t, s, n)
		for range n / 4 {
			o.tick(t, time.Now(), false)
		}
		s.Process().Kill()
		s.Kill()
		killed := time.Now()
		before := len(o.times)
		for at := time.Duration(0); at < away; at += every {
			if longForm() {
				time.Sleep(time.Until(killed.Add(at)))
			}
			o.tick(t, killed.Add(at), true)
		}
		allowed, most := len(o.times)-before, o.most()
		t.Logf("limit %d in %v: %d allowed by the nodes alone in %v, at most %d in a window, after %d by Redis; %v passed",
			n, o.limit.Span, allowed, away, most, before, time.Since(killed).Round(time.Second))
		if windows := int(away / o.limit.Span); most > int(n*11/10) || allowed < int(n)*windows*9/10-before {
			t.Errorf("limit %d: %d allowed in a window, %d by the nodes alone, want at most 1.1 times the limit in a window, and about %d of it",
				n, most, allowed, windows)
		}
		must.Do(t, s.Run())
		later := quiet(t, s.client(t), rules, config)
		fallen := -1
		eventually(t, "Redis decides again", func() bool {
			fallen, o.fallen = o.fallen, 0
			for i := range o.limiters {
				if d := o.limiters[i].Take(event(match.Host, banned(i))); d.Allowed {
					t.Fatalf("node %d: %+v when the server is back, want that the ban holds", i, d)
				}
				if d := o.limiters[i].Take(event(match.Path, "/")); d.Err != nil {
					o.fallen++
				}
			}
			return fallen == 0
		})
		for i := range o.limiters {
			eventually(t, "each ban is in its record again", func() bool { return peek(t, later, rules, about(3, banned(i))).Banned })
		}
	}
}
