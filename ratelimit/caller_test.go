package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestSetHasItsOwnRules changes all slices, maps and pointers of a rule after a Set was made from it: the Set stays the
// same.
func TestSetHasItsOwnRules(t *testing.T) {
	r := limitRule(t, "r", per(5, time.Minute))
	r.When = match.When{
		Method: []string{"GET"}, Path: []string{"/p"}, Status: []string{"200"},
		Client: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Fields: map[string][]string{"user": {"ada"}},
	}
	r.Ban = &ratelimit.Ban{After: 3, Of: ratelimit.Hits, Span: time.Minute, Steps: []time.Duration{time.Minute}}
	set := mustSet(t, r)
	r.When.Method[0], r.When.Path[0], r.When.Status[0] = "changed", "changed", "changed"
	r.When.Client[0], r.When.Fields["user"][0], r.When.Fields["other"] = netip.Prefix{}, "changed", nil
	r.Limits[0].N, r.Ban.After, r.Ban.Steps[0] = 1, 1, 0

	got := set.Rules()[0]
	if w := got.When; w.Method[0] != "GET" || w.Path[0] != "/p" || w.Status[0] != "200" ||
		!w.Client[0].IsValid() || w.Fields["user"][0] != "ada" || len(w.Fields) != 1 {
		t.Errorf("when: %+v", w)
	}
	if got.Limits[0].N != 5 || got.Ban.After != 3 || got.Ban.Steps[0] != time.Minute {
		t.Errorf("%+v, ban %+v", got, got.Ban)
	}
}

// TestConcurrentOpenAndSettle calls Open on a reservation while it is settled under rules that have changed. The race
// detector finds what the assertions cannot.
func TestConcurrentOpenAndSettle(t *testing.T) {
	r := limitRule(t, "r", per(5, time.Minute))
	r.Algorithm = ratelimit.InFlight
	l := mustLimiter(t, mustSet(t, limitRule(t, "other", per(100_000, time.Minute)), r), ratelimit.Config{})
	for range 50 {
		reserved := l.Reserve(keyEvent(l, "k"), 1)
		if !reserved.Open() {
			t.Fatalf("%+v", reserved.Decision)
		}
		if err := l.Update(mustSet(t, r)); err != nil { // so that its rules are numbered otherwise
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- reserved.Cancel() }()
		reserved.Open()
		if err := <-done; err != nil || reserved.Open() {
			t.Fatalf("%v, open %v", err, reserved.Open())
		}
		must.Do(t, l.Update(mustSet(t, limitRule(t, "other", per(100_000, time.Minute)), r)))
	}
}
