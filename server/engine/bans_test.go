package engine_test

import (
	"testing"
	"time"
)

// What is answered and told of a ban by hand is the ban that holds: one that lasts
// longer stays, and is not told again.
func TestBanBesideALonger(t *testing.T) {
	e := newEngine(t, someRules)
	sub := e.Subscribe()
	defer sub.Close()
	for _, step := range []struct {
		d, want time.Duration
		reason  string // of the ban that holds
		told    int
	}{
		{time.Minute, time.Minute, "1m0s", 1},
		{time.Hour, time.Hour, "1h0m0s", 1},
		{time.Minute, time.Hour, "1h0m0s", 0},
	} {
		r, err := e.Ban("per-client", []string{"192.0.2.1"}, step.d, step.d.String(), "")
		if err != nil || r.Reason != step.reason || r.Until.Sub(r.Since) != step.want {
			t.Errorf("ban for %v: %+v, %v; want the one for %v", step.d, r, err, step.want)
		}
		if n := told(sub); n != step.told {
			t.Errorf("ban for %v: %d were told, want %d", step.d, n, step.told)
		}
	}
	c := e.Caller()
	for range 6 {
		check(t, c, event(c, "client", "192.0.2.2"), 1)
	}
	if r, err := e.Ban("per-client", []string{"192.0.2.2"}, time.Hour, "", ""); err != nil || r.Count != 1 {
		t.Errorf("after a ban that a rule began: %+v, %v; want the count 1", r, err)
	}
}
