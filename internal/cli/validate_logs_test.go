package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestValidateWarnsOfImpossibleLogs has conditions on log and format that no event meets, and others
// that one may.
func TestValidateWarnsOfImpossibleLogs(t *testing.T) {
	file := writeRules(t, `version: 1
limits:
  - {name: relative, key: client, when: {log: access.log}, limit: 1 per 1m}
  - {name: misspelled, key: client, when: {format: mesages}, limit: 1 per 1m}
  - {name: unknown, key: client, when: {format: goaccess-like}, limit: 1 per 1m}
  - {name: exception, key: client, when: {not: {format: cfl}}, limit: 1 per 1m}
  - {name: good, key: client, when: {log: [/var/log/a.log, "journal:ssh.service", "-", "**/b.log"], format: [clf, "json:time=t@s", "(?i)CLF"]}, limit: 1 per 1m}
hot:
  - {name: busy, key: path, when: {log: b.log}, threshold: 5 per 1s}
`)
	var out, warnings bytes.Buffer
	if code := run(t.Context(), []string{"validate", file}, strings.NewReader(""), &out, &warnings); code != 0 {
		t.Fatalf("exit code %d: %s", code, warnings.String())
	}
	for _, want := range []string{
		`3:12: rule "relative": log "access.log": no event has it: must be an absolute path, journal:UNIT, or - for the standard input, or begin with **, as in **/access.log`,
		`4:12: rule "misspelled": format "mesages": no event has it; did you mean messages?`,
		`5:12: rule "unknown": format "goaccess-like": no event has it: must be one of clf, `,
		`6:12: rule "exception": format "cfl": no event has it; did you mean clf?`,
		`9:12: rule "busy": log "b.log": no event has it`,
	} {
		if !strings.Contains(warnings.String(), want) {
			t.Errorf("no %q in\n%s", want, warnings.String())
		}
	}
	if n := strings.Count(warnings.String(), "no event has it"); n != 5 {
		t.Errorf("%d warnings, want 5:\n%s", n, warnings.String())
	}
}
