package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
)

// TestTroubleShown shows failures around a server: in lately status, and in the title of lately top if somebody must act.
// Names of targets and files cannot disturb a terminal.
func TestTroubleShown(t *testing.T) {
	m := cannedModel(t, topPaint{}, 160, 40)
	m.live = true
	since := m.theirs().Add(-time.Minute)
	target := func(lag api.Millis, err string) *api.Enforcement {
		return &api.Enforcement{Networks: 7, Skipped: map[string]int{"reserved": 2}, Targets: []api.EnforcementTarget{{Name: "nftables", Lag: lag, Error: err, Failures: 3}}}
	}
	log := func(lag api.Millis, silent bool, problem string) []api.FollowedLog {
		return []api.FollowedLog{{File: "ok.log", LastLine: since}, {File: "a\x1b[2J.log", Lines: 9, Gaps: 1, Lag: lag, Silent: silent, Problem: problem, LastLine: since}}
	}
	for _, x := range []struct {
		status             api.Status
		title, state, line string // state and line are parts
	}{
		{api.Status{}, "● live", "", ""},
		{api.Status{Store: &api.StoreStatus{Address: "h:6379", Up: true, Since: since, Latency: 1500, Nodes: 3}}, "● live", "", "up at h:6379 since "},
		{api.Status{Store: &api.StoreStatus{Address: "h:6379", Up: true, Since: since, Nodes: 3, OtherRules: 2}}, "● live, other rules on 2 of 3 servers", "", "servers that enforce other rules than this one: 2"},
		{api.Status{Store: &api.StoreStatus{Address: "h:6379", Since: since, Error: "refused\x1b[2J"}, Logs: log(99_000, true, "x")}, "● live, store down 1m 00s", "", `refused\x1b[2J`},
		{api.Status{Enforcement: target(0, "")}, "● live", "enforced 7", "addresses and networks 7, bans that are not enforced 2"},
		{api.Status{Enforcement: target(9000, "")}, "● live", "enforced 7", "nftables: 9s behind, attempts that failed 3"},
		{api.Status{Enforcement: target(65_000, "")}, "● live, nftables is 1m 05s behind", "", "nftables: 1m 05s behind"},
		{api.Status{Enforcement: target(100, "no permission\x1b[2J")}, `● live, nftables fails: no permission\x1b[2J`, "", `no permission\x1b[2J`},
		{api.Status{Logs: log(0, false, "")}, "● live", "logs behind 0s", `a\x1b[2J.log: 0s behind, lines 9, bad 0, late events 0, gaps 1`},
		{api.Status{Logs: log(125_000, false, "")}, `● live, a\x1b[2J.log is read 2m 05s late`, "logs behind 2m 05s", "2m 05s behind"},
		{api.Status{Logs: log(0, true, "")}, `● live, a\x1b[2J.log is silent for 1m 00s`, "", "no line for longer than --silence"},
		{api.Status{Logs: log(0, true, "no such file")}, `● live, a\x1b[2J.log: no such file`, "", "no such file"},
	} {
		m.reading.status.Store, m.reading.status.Enforcement, m.reading.status.Logs = x.status.Store, x.status.Enforcement, x.status.Logs
		if title, _ := m.linkText(); title != x.title {
			t.Errorf("%+v: the title is %q, want %q", x.status, title, x.title)
		}
		if state := m.stateLine(); !strings.Contains(state, x.state) || x.state == "" && x.status.Enforcement == nil && strings.Contains(state, "enforced") {
			t.Errorf("%+v: the state is %q, want %q in it", x.status, state, x.state)
		}
		var text strings.Builder
		storeLines(&text, x.status.Store)
		enforcementLines(&text, x.status.Enforcement)
		logLines(&text, x.status.Logs)
		if !strings.Contains(text.String(), x.line) || strings.Contains(text.String(), "\x1b") || x.line == "" && text.Len() > 0 {
			t.Errorf("%+v: the status is %q, want %q", x.status, text.String(), x.line)
		}
	}
}
