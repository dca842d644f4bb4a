package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestLacking counts the events that each rule does not judge because they lack a field of its key.
func TestLacking(t *testing.T) {
	limits := []ratelimit.Limit{{N: 5, Span: time.Minute}}
	l := must.Get(ratelimit.New(
		ratelimit.Rule{Name: "client", Key: match.MustKey("client"), Limits: limits},
		ratelimit.Rule{Name: "pair", Key: match.MustKey("client", "tenant"), Limits: limits},
		ratelimit.Rule{Name: "login", Key: match.MustKey("tenant"), Limits: limits, When: match.When{Path: []string{"/login"}}},
	))(t)
	var bare, tenant, none match.Event
	bare.SetString(match.Client, "192.0.2.1")
	tenant.SetString(match.Client, "192.0.2.1")
	tenant.SetNamedString("tenant", "acme")
	none.SetString(match.Path, "/login")
	for range 3 {
		l.Take(&bare)
	}
	l.Take(&tenant)
	l.Peek(&bare)
	l.Internal().TakeAll([]batch.Query{{Event: &none, Cost: 1}, {Event: &none, Cost: 1, Peek: true}, {Event: &bare, Cost: 1}}, nil)
	want := map[string]uint64{"client": 1, "pair": 5, "login": 1}
	for _, r := range l.Stats().Rules {
		if r.Lacking != want[r.Rule] {
			t.Errorf("%s: %d events lacked a field; want %d", r.Rule, r.Lacking, want[r.Rule])
		}
	}
}
