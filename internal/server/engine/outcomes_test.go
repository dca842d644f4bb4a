package engine_test

import (
	"testing"

	"github.com/lately-go/lately/api"
)

// Each decision has one outcome: the four counts are disjoint, and add up to all decisions. An error is not a decision.
func TestOutcomes(t *testing.T) {
	e := newEngine(t, `version: 1
limits:
  - {name: login, key: client, when: {path: /login}, limit: 2 per 1h, ban: {after: 1 refusals in 1h, for: 1h}}
  - {name: trial, key: user, mode: shadow, limit: 1 per 1h}
allow: [10.0.0.0/8]
`)
	c := e.Session()
	for _, x := range []struct {
		name   string
		fields []string
		want   api.Totals // what the event adds
	}{
		{"allowed", []string{"client", "192.0.2.1", "path", "/login"}, api.Totals{Allowed: 1}},
		{"allowed, the last", []string{"client", "192.0.2.1", "path", "/login"}, api.Totals{Allowed: 1}},
		{"refused by the limit", []string{"client", "192.0.2.1", "path", "/login"}, api.Totals{Refused: 1}},
		{"the refusal that begins the ban", []string{"client", "192.0.2.1", "path", "/login"}, api.Totals{Banned: 1}},
		{"refused by the ban", []string{"client", "192.0.2.1", "path", "/login"}, api.Totals{Banned: 1}},
		{"on the allow list", []string{"client", "10.0.0.1", "path", "/login"}, api.Totals{Allowed: 1}},
		{"on the allow list, without a rule", []string{"client", "10.0.0.1"}, api.Totals{Allowed: 1}},
		{"judged by a shadow rule", []string{"user", "ada"}, api.Totals{Allowed: 1}},
		{"refused by a shadow rule", []string{"user", "ada"}, api.Totals{Allowed: 1}},
		{"no condition holds", []string{"client", "192.0.2.2", "path", "/"}, api.Totals{Unmatched: 1}},
		{"no key", []string{"path", "/login"}, api.Totals{Unmatched: 1}},
		{"no field", nil, api.Totals{Unmatched: 1}},
	} {
		before := e.Totals()
		check(t, c, event(c, x.fields...), 1)
		got := e.Totals()
		got.Allowed -= before.Allowed
		got.Refused -= before.Refused
		got.Banned -= before.Banned
		got.Unmatched -= before.Unmatched
		got.Errors -= before.Errors
		if got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
	if got, want := *e.RuleInfos()[0].Stats, [5]uint64{2, 1, 2, 0, 1}; [5]uint64{got.Allowed, got.Refused, got.Banned, got.Shadow, got.BansStarted} != want {
		t.Errorf("rule login: %+v, want %v", got, want)
	}
	if got, want := *e.RuleInfos()[1].Stats, [5]uint64{1, 0, 0, 1, 0}; [5]uint64{got.Allowed, got.Refused, got.Banned, got.Shadow, got.BansStarted} != want {
		t.Errorf("rule trial: %+v, want %v", got, want)
	}
}
