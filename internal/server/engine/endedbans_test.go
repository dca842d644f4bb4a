package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

const loginRules = `version: 1
bans:
  - {name: logins, key: client, after: 3 hits in 1h, for: 10h, factor: 2, max: 40h}
`

// TestUnbanThenCrash ends a ban by hand, and judges the lines that began it again, as after a crash: the ban stays
// ended, and later lines are judged as if there had been no crash, also after a second crash, whose snapshot has no
// line of the journal of the first.
func TestUnbanThenCrash(t *testing.T) {
	path := t.TempDir()
	j := engine.OpenJournal(t, path, nil)
	live := newEngine(t, loginRules)
	live.Bans().Journal(j)
	snapshot := saved(t, live)
	begin := live.Now().Add(-time.Hour)
	judge := func(e *engine.Engine, at time.Time) string {
		s := e.Session()
		ev := event(s, "client", "192.0.2.1")
		ev.Time = at
		d := s.CheckLogged(ev)
		if d.BannedUntil.IsZero() {
			return fmt.Sprint(d.Allowed)
		}
		return fmt.Sprint(d.Allowed, d.Started, d.BannedUntil.Sub(at).Round(time.Minute))
	}
	again := func(e *engine.Engine) {
		for n := range 6 {
			judge(e, begin.Add(time.Duration(n)*time.Second))
		}
	}
	later := func(e *engine.Engine) (all []string) {
		for range 6 {
			all = append(all, judge(e, e.Now()))
		}
		return all
	}
	again(live)
	if n, err := live.Bans().Unban("logins", []string{"192.0.2.1"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	must.Do(t, j.Close())
	live.Bans().Journal(nil)
	want := later(live)
	if want[3] != "false true 10h0m0s" {
		t.Fatalf("after the ban was ended: %q", want)
	}

	control := restored(t, loginRules, snapshot)
	if again(control); len(banned(t, control)) != 1 {
		t.Error("the lines do not begin the ban again")
	}
	first := restored(t, loginRules, snapshot)
	engine.OpenJournal(t, path, first.Restorer().Record)
	second := restored(t, loginRules, saved(t, first))
	for _, e := range []*engine.Engine{first, second} {
		sub := e.Subscribe()
		again(e)
		if got := banned(t, e); len(got) > 0 {
			t.Errorf("the ban is back: %q", got)
		}
		if n := told(sub); n > 0 {
			t.Errorf("%d events are published of a ban that was ended", n)
		}
		sub.Close()
		if got := later(e); !slices.Equal(got, want) {
			t.Errorf("later lines: %q, want %q", got, want)
		}
	}
}
