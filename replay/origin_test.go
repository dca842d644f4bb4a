package replay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// TestRulesOfLogs replays two logs of two formats with rules for one of them. Without its condition, a rule counts the
// events of both.
func TestRulesOfLogs(t *testing.T) {
	const dec = "2024-12-31T23:59:59+00:00"
	access := writeFile(t, "access.log", []byte(strings.Repeat(clfAt(1, "192.0.2.1", "/"), 3)))
	auth := writeFile(t, "auth.log", []byte(strings.Repeat(sshd(dec), 2)))
	dir := filepath.Dir(access)
	for when, want := range map[string]int64{
		"":                                   5,
		"when: {log: " + auth + "}, ":        2,
		"when: {log: '" + dir + "/acc*'}, ":  3,
		"when: {log: '**/auth.log'}, ":       2,
		"when: {log: ['**']}, ":              5,
		"when: {format: clf}, ":              3,
		"when: {format: [messages, clf]}, ":  5,
		"when: {format: clf, log: '**/a*'},": 3,
	} {
		for _, cores := range []int{1, 3} {
			r := mustRun(t, replay.Config{Files: []string{access, auth}, Cores: cores, Rules: fileOf(t, when)})
			if got := *r.Rules[0].Allowed; got != want {
				t.Errorf("%q: %d events, want %d", when, got, want)
			}
		}
	}
	r, err := replay.Run(t.Context(), replay.Config{Files: []string{access, auth}, Rules: fileOf(t, "when: {log: '**/mail.log'}, ")})
	if want := `rule "r": no log has the log **/mail.log: it is ` + access + ", " + auth; err != nil || len(r.Problems) != 1 || r.Problems[0] != want {
		t.Errorf("%v, problems %q, want %q", err, r.Problems, want)
	}
	r = mustRun(t, replay.Config{Files: []string{access, auth}, Cut: replay.Cut{Where: []string{"log=**/auth.log"}}})
	if r.Events != 2 {
		t.Errorf("%d events of the log, want 2", r.Events)
	}
}

func fileOf(t *testing.T, when string) *rules.File {
	t.Helper()
	file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nlimits:\n  - {name: r, key: client, "+when+"limit: 100 per 1m}\n")))(t)
	return file
}
