package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

const refusingRules = `version: 1
limits:
  - {name: per-client, key: client, when: {path: /}, limit: 1 per 1h, ban: {after: 5 refusals in 1h, for: 1h}}
  - {name: login, key: [client, user], limit: 1 per 1h}
`

// Refused lists by rule and key what limits and bans have refused, and nothing that was
// allowed.
func TestRefused(t *testing.T) {
	e := newEngine(t, refusingRules)
	c := e.Session()
	visit := func(n int, fields ...string) {
		for range n {
			check(t, c, event(c, fields...), 1)
		}
	}
	visit(9, "client", "192.0.2.1", "path", "/")                          // 1 allowed, 8 refused, 3 of them by the ban
	visit(4, "client", "192.0.2.2", "path", "/")                          // 1 allowed, 3 refused
	visit(1, "client", "192.0.2.3", "path", "/")                          // allowed
	visit(3, "client", "192.0.2.4", "path", "/login", "user", "a\tb\x00") // 1 allowed, 2 refused
	for range 6 {                                                         // 1 allowed, 5 refused
		must.Get(c.Take("login", 1, "192.0.2.5\troot"))(t)
	}
	want := []string{
		`per-client ["192.0.2.1"] 8 banned true`, `login ["192.0.2.5" "root"] 5 banned false`,
		`per-client ["192.0.2.2"] 3 banned false`, `login ["192.0.2.4" "a\tb\x00"] 2 banned false`,
	}
	for _, span := range []time.Duration{time.Minute, time.Hour} {
		if got := refused(t, e, 10, span); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("over %v: %q\nwant %q", span, got, want)
		}
	}
	if got := refused(t, e, 2, time.Minute); fmt.Sprint(got) != fmt.Sprint(want[:2]) {
		t.Errorf("the first two: %q, want %q", got, want[:2])
	}

	// A rule with another key, and one that was removed, list nothing.
	file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nlimits:\n  - {name: login, key: client, limit: 1 per 1h}\n")))(t)
	must.Get(e.Replace(file, true))(t)
	if got := refused(t, e, 10, time.Minute); len(got) != 0 {
		t.Errorf("under other rules: %q, want none", got)
	}
	for _, span := range []time.Duration{0, 2 * time.Hour} {
		if _, err := e.Refused(1, span); err == nil {
			t.Errorf("over %v: no error", span)
		}
	}
}

func refused(t *testing.T, e *engine.Engine, n int, span time.Duration) (list []string) {
	t.Helper()
	keys := must.Get(e.Refused(n, span))(t)
	for _, k := range keys {
		if k.Hi < k.Lo {
			t.Errorf("%s %q: bounds [%d, %d]", k.Rule, k.Values(), k.Lo, k.Hi)
		}
		list = append(list, fmt.Sprintf("%s %q %d banned %v", k.Rule, k.Values(), k.Lo, k.BannedUntil.After(time.Now())))
	}
	return list
}

// A refusal allocates nothing once its key is counted.
func TestRefusedAllocates(t *testing.T) {
	e := newEngine(t, refusingRules)
	c := e.Session()
	ev := event(c, "client", "192.0.2.1", "path", "/")
	check(t, c, ev, 1)
	check(t, c, ev, 1)
	if n := testing.AllocsPerRun(100, func() { check(t, c, ev, 1) }); n != 0 {
		t.Errorf("a refusal makes %v allocations, want 0", n)
	}
}
