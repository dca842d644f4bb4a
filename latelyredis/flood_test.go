package latelyredis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestFlood takes a key that is refused from several goroutines: no script runs, and a decision does not allocate. A rule
// that counts refusals, or bans after them, counts all.
func TestFlood(t *testing.T) {
	now := clockAt(time.Now())
	path := match.MustKey("path")
	plain := limited("r", path, ratelimit.Sliding, 5)
	counting, inFlight, both, shadow := plain, plain, limited("both", path, ratelimit.GCRA, 1000), plain
	counting.CountRefused, inFlight.Algorithm, shadow.Shadow, both.CountRefused = true, ratelimit.InFlight, true, true
	banning := plain
	banning.Ban = &ratelimit.Ban{After: 10_000, Of: ratelimit.Refusals, Span: time.Minute, For: time.Minute}
	const flood, callers = 400, 8
	for _, c := range []struct {
		name  string
		rules []ratelimit.Rule
		want  int // events that reach Redis
	}{
		{"a limit", []ratelimit.Rule{plain}, 0},
		{"a limit, and one that is not reached", []ratelimit.Rule{plain, limited("other", path, ratelimit.GCRA, 1000)}, 0},
		{"a limit that counts what it refuses", []ratelimit.Rule{counting}, flood},
		{"another rule counts what is refused", []ratelimit.Rule{plain, both}, flood},
		{"a ban after refusals", []ratelimit.Rule{banning}, flood},
		{"what is in flight", []ratelimit.Rule{inFlight}, flood},
		{"a shadow rule, which does not refuse", []ratelimit.Rule{shadow}, flood},
	} {
		p, client := watched(t, redis(t))
		rules := set(t, c.rules...)
		store := knowing(t, client, rules, prefixed(), now, now)
		l := limiterOf(t, rules, store)
		must.Do(t, store.Sync(context.Background()))
		var e match.Event
		e.SetString(match.Path, "/")
		for range 6 {
			l.Take(&e)
		}
		before := p.Scripts()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range flood / callers {
					if d := l.Take(&e); d.Err != nil || d.Allowed != c.rules[0].Shadow || !d.Allowed && (d.Rule != "r" || d.Limit != 5) {
						t.Errorf("%s: %+v", c.name, d)
					}
				}
			})
		}
		all.Wait()
		// A script may decide about an event of each caller.
		if got := p.Scripts() - before; got > c.want || got < c.want/callers {
			t.Errorf("%s: %d scripts for %d events, want that %d reach Redis", c.name, got, flood, c.want)
		}
		if c.want == 0 {
			r := one(rules, about(0, "/"))
			if n := testing.AllocsPerRun(100, func() { store.DecideKnown(r) }); n > 0 || !r.Subjects[0].Outcome.Refused {
				t.Errorf("%s: %v allocations, %+v", c.name, n, r.Subjects[0].Outcome)
			}
		}
	}
}

// TestRefusalEnds refuses a key on one node. Another gives back and ends, or all keys are deleted: the first allows it
// again, long before it would by itself.
func TestRefusalEnds(t *testing.T) {
	s := own(t)
	admin := s.client(t)
	rules := set(t, lasting(24*time.Hour, limited("r", match.MustKey("path"), ratelimit.Sliding, 1)))
	for _, c := range []struct {
		name string
		do   func(*latelyredis.Store) error
	}{
		{"a reset", func(s *latelyredis.Store) error {
			return s.Adjust(context.Background(), &latelyredis.Adjustment{Change: latelyredis.Reset, Set: rules, Key: []byte("k")})
		}},
		{"a refund", func(s *latelyredis.Store) error {
			return s.Adjust(context.Background(), &latelyredis.Adjustment{Change: latelyredis.Refund, Set: rules, Key: []byte("k"), N: 1})
		}},
		{"FLUSHALL", func(*latelyredis.Store) error {
			do(t, admin, "FLUSHALL")
			return nil
		}},
	} {
		config := prefixed()
		node := newStore(t, s.client(t), rules, config)
		eventually(t, "the node has asked for changes", node.Read)
		refused := func() bool {
			r := take(context.Background(), node, rules, "k")
			return r.Err != nil || r.Subjects[0].Outcome.Refused
		}
		eventually(t, "the key is refused", refused)
		other := newStore(t, s.client(t), rules, config)
		must.Do(t, c.do(other))
		other.Close()
		eventually(t, "it is allowed after "+c.name, func() bool { return !refused() })
	}
}
