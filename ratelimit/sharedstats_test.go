package ratelimit_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestSharedStats counts decisions by rule in a limiter with a shared store: the decisions of the store, through all verbs,
// and those of each fail policy while it is unavailable. An Update keeps the counts of rules with the same name and key.
func TestSharedStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := func(name, field string, n uint64, f ratelimit.FailPolicy) ratelimit.Rule {
			return ratelimit.Rule{Name: name, Key: match.MustKey(field), Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}, OnStoreFailure: f}
		}
		local, open, closed := rule("local", "path", 8, ratelimit.FailLocal), rule("open", "path", 100, ratelimit.FailOpen), rule("closed", "user", 100, ratelimit.FailClosed)
		set := mustSet(t, local, open, closed)
		m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
		f := &fleet{Store: updating{m}, nodes: 4}
		l := ratelimit.Over(set, f)
		want := func(when string, want ...ratelimit.RuleStats) {
			t.Helper()
			var got []ratelimit.RuleStats
			for _, r := range l.Stats().Rules {
				got = append(got, ratelimit.RuleStats{Rule: r.Rule, Allowed: r.Allowed, Refused: r.Refused, Limit: r.Limit})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		want("at the start", ratelimit.RuleStats{Rule: "local", Limit: 8}, ratelimit.RuleStats{Rule: "open", Limit: 100}, ratelimit.RuleStats{Rule: "closed", Limit: 100})

		var e match.Event
		e.SetString(match.Path, "/")
		one := must.Get(l.Rule("local"))(t)
		l.Take(&e)
		l.Peek(&e)
		one.Take("/")
		l.Reserve(&e, 1).Cancel()
		l.Internal().TakeAll([]batch.Query{{Event: &e, Cost: 5}, {Event: &e, Cost: 5}, {Rule: "closed", Key: []string{"ada"}, Cost: 1}, {Event: &e, Cost: 1, Peek: true}}, nil)
		want("by the store", ratelimit.RuleStats{Rule: "local", Allowed: 4, Refused: 1, Limit: 8}, ratelimit.RuleStats{Rule: "open", Allowed: 4, Limit: 100},
			ratelimit.RuleStats{Rule: "closed", Allowed: 1, Limit: 100})

		// The share of 2 of the rule local is used up; a path of its own has both.
		f.away = true
		l.Take(&e)
		e.SetString(match.Path, "/other")
		for range 3 {
			l.Take(&e)
		}
		l.Peek(&e)
		e.SetString(match.User, "ada")
		l.Take(&e)
		want("while it is away", ratelimit.RuleStats{Rule: "local", Allowed: 6, Refused: 3, Limit: 8}, ratelimit.RuleStats{Rule: "open", Allowed: 8, Limit: 100},
			ratelimit.RuleStats{Rule: "closed", Allowed: 1, Refused: 1, Limit: 100})

		// The rules change places, local has another limit, and open another key.
		must.Do(t, l.Update(mustSet(t, closed, rule("open", "user", 100, ratelimit.FailOpen), rule("local", "path", 9, ratelimit.FailLocal))))
		want("after an Update", ratelimit.RuleStats{Rule: "closed", Allowed: 1, Refused: 1, Limit: 100}, ratelimit.RuleStats{Rule: "open", Limit: 100},
			ratelimit.RuleStats{Rule: "local", Allowed: 6, Refused: 3, Limit: 9})
	})
}
