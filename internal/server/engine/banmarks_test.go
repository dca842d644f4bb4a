package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// TestMarksOfBans marks bans and unbans by hand, one mark for those within ten seconds, also after a restart, and none for
// rules. They do not displace the marks of reloads.
func TestMarksOfBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := engine.Config{Rules: parse(t, someRules)}
		e := must.Get(engine.New(config))(t)
		client := 0
		ban := func(n int) {
			t.Helper()
			for range n {
				client++
				must.Get(e.Bans().Ban("per-client", []string{fmt.Sprintf("198.18.%d.%d", client/200, client%200)}, time.Hour, "", ""))(t)
			}
		}
		marks := func() string {
			var all []string
			for _, m := range e.Marks(24 * time.Hour) {
				all = append(all, fmt.Sprintf("%s %d", m.Type, m.Bans))
			}
			return strings.Join(all, ", ")
		}
		c := e.Session()
		for range 6 {
			check(t, c, event(c, "client", "192.0.2.2"), 1) // banned by the rule
		}
		ban(3)
		time.Sleep(9 * time.Second)
		ban(1)
		must.Get(e.Bans().Unban("per-client", []string{"198.18.0.1"}))(t)
		if _, err := e.Bans().Unban("per-client", []string{"198.18.0.1"}); err != nil { // there is none any more
			t.Fatal(err)
		}
		ban(1)
		time.Sleep(11 * time.Second)
		ban(1)
		want := "start 0, ban 5, unban 1, ban 1"
		if got := marks(); got != want {
			t.Errorf("marks %q, want %q", got, want)
		}
		e = restart(t, e, config, time.Second)
		defer e.Close()
		if got := marks(); got != want+", start 0" {
			t.Errorf("after a restart: marks %q, want %q", got, want+", start 0")
		}
		must.Get(e.Replace(parse(t, someRules), true))(t)
		for range 300 {
			ban(1)
			time.Sleep(11 * time.Second)
		}
		if got := marks(); strings.Count(got, "ban 1") != 253 || !strings.HasPrefix(got, "start 0, start 0, reload 0, ban 1, ") {
			t.Errorf("after many bans: marks %q", got)
		}
	})
}
