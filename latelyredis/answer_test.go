package latelyredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// part returns a part of a request for /login from client.
func part(of match.Part, client, status string) *match.Event {
	e := &match.Event{Part: of}
	e.SetString(match.Client, client)
	e.SetString(match.Path, "/login")
	e.SetString(match.Status, status)
	return e
}

// TestAnswersOfOthers has one node judge requests, and another receive their answers, beside a rule that counts requests by
// the same key and one by another: exactly as many failures are allowed as the limit says, and no refused request is
// counted.
func TestAnswersOfOthers(t *testing.T) {
	client := match.MustKey("client")
	failed := match.When{Path: []string{"/login"}, Status: []string{"401"}}
	rules := []ratelimit.Rule{
		{Name: "all", Key: client, Limits: []ratelimit.Limit{{N: 100, Span: time.Minute}}},
		{Name: "paths", Key: match.MustKey("path"), Limits: []ratelimit.Limit{{N: 1000, Span: time.Minute}}},
		{Name: "failures", Key: client, When: failed, Limits: []ratelimit.Limit{{N: 3, Span: time.Minute}}},
		{Name: "bans", Key: client, When: match.When{Status: []string{"404"}}, Ban: &ratelimit.Ban{After: 2, Span: time.Minute, For: time.Hour}},
	}
	for _, config := range []struct {
		name    string
		batched bool
	}{{"exact", false}, {"batched", true}} {
		t.Run(config.name, func(t *testing.T) {
			s, rules := redis(t).client(t), set(t, rules...)
			c := prefixed()
			c.Batched = config.batched
			var nodes [2]*ratelimit.Limiter
			for i := range nodes {
				nodes[i] = limiterOf(t, rules, newStore(t, s, rules, c))
			}
			take := func(node int, e *match.Event) ratelimit.Decision {
				d := nodes[node].Take(e)
				if d.Err != nil {
					t.Fatal(d.Err)
				}
				return d
			}
			for i := range 3 {
				if d := take(i%2, part(match.Request, "192.0.2.1", "")); !d.Allowed {
					t.Fatalf("request %d: %+v", i, d)
				}
				if d := take(1-i%2, part(match.Answer, "192.0.2.1", "401")); !d.Allowed || d.Rule != "failures" || d.Remaining != uint64(2-i) {
					t.Fatalf("answer %d: %+v", i, d)
				}
			}
			for i := range 6 { // from memory as well
				if d := take(i%2, part(match.Request, "192.0.2.1", "")); d.Allowed || d.Rule != "failures" || d.RetryAfter <= 0 {
					t.Errorf("request %d beyond the limit: %+v", i, d)
				}
			}
			if !config.batched { // otherwise a node may not yet have sent what it has allowed
				for rule, left := range map[string]uint64{"all": 100 - 3 - 1, "paths": 1000 - 3 - 1} {
					r := must.Get(nodes[0].Rule(rule))(t)
					if d := r.Peek(map[string]string{"all": "192.0.2.1", "paths": "/login"}[rule]); d.Remaining != left {
						t.Errorf("%s has %d left, want %d", rule, d.Remaining, left)
					}
				}
			}
			for i := range 3 {
				if d := take(0, part(match.Request, "192.0.2.2", "")); !d.Allowed {
					t.Fatalf("request %d before the ban: %+v", i, d)
				}
				if d := take(1, part(match.Answer, "192.0.2.2", "404")); d.Started != (i == 2) || !d.Allowed {
					t.Fatalf("404 number %d: %+v", i, d)
				}
			}
			for node := range nodes {
				if d := take(node, part(match.Request, "192.0.2.2", "")); d.Allowed || d.Rule != "bans" || d.BannedUntil.IsZero() {
					t.Errorf("node %d in the ban: %+v", node, d)
				}
			}
		})
	}
}

// TestAnswersWithoutStore takes the store away: an answer is never refused, and is counted where a rule decides in
// local memory.
func TestAnswersWithoutStore(t *testing.T) {
	for policy, refused := range map[ratelimit.FailPolicy]bool{ratelimit.FailLocal: true, ratelimit.FailOpen: false, ratelimit.FailClosed: true} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			s := own(t)
			rules := set(t, ratelimit.Rule{
				Name: "failures", Key: match.MustKey("client"), When: match.When{Status: []string{"401"}},
				Limits: []ratelimit.Limit{{N: 2, Span: time.Hour}}, OnStoreFailure: policy,
			})
			l := must.Get(ratelimit.NewLimiter(rules, ratelimit.Config{Store: newStore(t, s.client(t), rules, prefixed()), StoreTimeout: time.Second}))(t)
			l.Take(part(match.Answer, "192.0.2.1", "401"))
			s.Stop()
			if d := l.Take(part(match.Answer, "192.0.2.1", "401")); !d.Allowed || d.Err == nil {
				t.Errorf("an answer without the store: %+v", d)
			}
			if d := l.Take(part(match.Request, "192.0.2.1", "")); d.Allowed == refused {
				t.Errorf("a request without the store, after two answers: %+v", d)
			}
		})
	}
}
