package latelyredis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// watched returns a client of s by a proxy.
func watched(t testing.TB, s *server) (*redistest.Proxy, rueidis.Client) {
	t.Helper()
	p := s.Watch(t)
	return p, p.Client(t)
}

// TestRoundTrips counts commands, and checks that the client sends all before it waits
// for a reply: a batch is one round trip, as are concurrent requests.
func TestRoundTrips(t *testing.T) {
	p, client := watched(t, redis(t))
	path, host := match.MustKey("path"), match.MustKey("host")
	rules := set(t,
		limited("by path", path, ratelimit.Sliding, 5), limited("too", path, ratelimit.GCRA, 1000),
		limited("by host", host, ratelimit.Sliding, 1000),
	)
	store := quiet(t, client, rules, prefixed())
	ask := func(subjects ...latelyredis.Subject) *latelyredis.Request {
		return &latelyredis.Request{Set: rules, Cost: 1, Subjects: subjects}
	}
	decide := func(what string, commands int, batch ...*latelyredis.Request) {
		t.Helper()
		before := p.Scripts()
		p.Hold(commands)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		store.Decide(ctx, batch)
		for _, r := range batch {
			if r.Err != nil {
				t.Fatalf("%s: %v: the client waits for a reply before it has sent all", what, r.Err)
			}
		}
		if got := p.Scripts() - before; got != commands {
			t.Errorf("%s: %d commands, want %d", what, got, commands)
		}
	}
	// The scripts are sent.
	store.Decide(context.Background(), []*latelyredis.Request{ask(about(0, "warm"), about(1, "warm"), about(2, "warm")), ask(about(0, "warm"))})
	decide("three rules of two subjects", 2, ask(about(0, "/a"), about(1, "/a"), about(2, "h")))
	decide("two rules of one subject", 1, ask(about(0, "/a"), about(1, "/a")))
	var batch []*latelyredis.Request
	for i := range 100 {
		batch = append(batch, ask(about(0, fmt.Sprint("/batch/", i)), about(1, fmt.Sprint("/batch/", i))))
	}
	decide("a batch of 100 subjects, 8 in a script", 13, batch...)
	for _, r := range batch {
		r.Subjects = r.Subjects[:1]
	}
	decide("a batch of 100 subjects of one rule, 16 in a script", 7, batch...)

	for what, c := range map[string]struct {
		rules    []int
		commands int // at least
	}{
		"100 at once":             {[]int{0, 1}, 13},
		"100 at once of one rule": {[]int{0}, 7},
	} {
		p.Hold(c.commands)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				var subjects []latelyredis.Subject
				for _, rule := range c.rules {
					subjects = append(subjects, about(rule, fmt.Sprint("/", what, "/", i)))
				}
				r := ask(subjects...)
				if store.Decide(ctx, []*latelyredis.Request{r}); r.Err != nil {
					t.Errorf("%s: %v", what, r.Err)
				}
			})
		}
		all.Wait()
	}
}

// TestRefusedElsewhere counts the second round trip of a request that one subject refuses, and checks that the other is not
// charged then.
func TestRefusedElsewhere(t *testing.T) {
	p, client := watched(t, redis(t))
	rules := set(t,
		limited("by path", match.MustKey("path"), ratelimit.Sliding, 0), limited("by host", match.MustKey("host"), ratelimit.Exact, 10))
	store := quiet(t, client, rules, prefixed())
	for range 3 {
		before := p.Scripts()
		r := &latelyredis.Request{Set: rules, Cost: 2, Subjects: []latelyredis.Subject{about(0, "/"), about(1, "h")}}
		store.Decide(context.Background(), []*latelyredis.Request{r})
		o := r.Subjects[1].Outcome
		if r.Err != nil || !r.Subjects[0].Outcome.Refused || o.Refused || o.Charged || o.Remaining != 10 {
			t.Fatalf("%v, %+v, want the path refused and 10 left of the host, which is not charged", r.Err, r.Subjects)
		}
		if n := p.Scripts() - before; n > 3 && before > 6 {
			t.Errorf("%d commands, want 3", n)
		}
	}
}

// limited returns a rule with a limit of n in a minute, or a day of the calendar.
func limited(name string, key match.Key, a ratelimit.Algorithm, n uint64) ratelimit.Rule {
	l := ratelimit.Limit{N: n, Span: time.Minute}
	if a == ratelimit.Calendar {
		l.Span = 24 * time.Hour
	}
	return ratelimit.Rule{Name: name, Key: key, Algorithm: a, Limits: []ratelimit.Limit{l}}
}

// lasting returns a rule with another span of its first limit.
func lasting(span time.Duration, r ratelimit.Rule) ratelimit.Rule {
	r.Limits[0].Span = span
	return r
}

// about is a subject: the number of a rule, and a key.
func about(rule int, key string) latelyredis.Subject {
	return latelyredis.Subject{Key: []byte(key), Outcome: latelyredis.Outcome{Rule: rule}}
}
