package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const triedRules = `version: 1
counters:
  requests: {key: client, spans: [1h]}
limits:
  - {name: per-client, key: client, limit: 3 per 1m}
`

const draftRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 2 per 1m, ban: {after: 1 refusals in 1m, for: 10m}}
`

// TestDiffServer follows a log, and tries a draft on the events that the server kept: the report is the same as for the
// log.
func TestDiffServer(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	appendTo(t, path("old.yaml"), triedRules)
	appendTo(t, path("new.yaml"), draftRules)
	appendTo(t, path("wrong.yaml"), "version: 1\nlimits: 7\n")
	appendTo(t, path("ours"), "192.0.2.0/30 # the shop\n")
	appendTo(t, path("others"), "198.51.100.9\n")
	appendTo(t, path("bytes"), "\xff\n")
	now := time.Now().Add(-time.Minute)
	appendTo(t, path("log"), requests("192.0.2.1", now, 5)+requests(`\x1b[31m`, now, 4)+requests("192.0.2.2", now, 1)+requests("198.51.100.9", now, 2))
	s := serve(t, "--rules", path("old.yaml"), "--follow", path("log")+"=clf", "--keep-events", "1MiB")
	c := s.dial()
	if !eventually(func() bool { return c.say("SUM", "requests", "198.51.100.9") == "2" }) {
		t.Fatalf("the log is not read:\n%s", s.log.String())
	}
	diff := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append([]string{"diff"}, args...), nil, &out, &errs)
		return code, out.String(), errs.String()
	}
	report := func(want int, args ...string) map[string]any {
		t.Helper()
		code, stdout, stderr := diff(args...)
		var got map[string]any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != want {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
		}
		return got
	}
	ofLog := report(exitProtected, "--json", "--protect", path("ours"), "--format", "clf", path("old.yaml"), path("new.yaml"), path("log"))
	ofServer := report(exitProtected, "--json", "--protect", path("ours"), "--addr", s.http, path("new.yaml"))
	if unknown, _ := ofServer["unknown"].([]any); len(unknown) < 2 || ofServer["since"] == nil || ofServer["files"].([]any)[0] != s.http {
		t.Errorf("the report does not mention what it lacks: %v", ofServer)
	}
	delete(ofServer, "unknown")
	delete(ofServer, "since")
	ofServer["files"] = ofLog["files"]
	if !reflect.DeepEqual(ofServer, ofLog) {
		t.Errorf("of the server %v\nof the log    %v", ofServer, ofLog)
	}

	for _, x := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"--addr " + s.http + " new.yaml", exitOK, "12 events of " + s.http + ", from ", ""},
		{"--addr " + s.http + " new.yaml", exitOK, `\x1b[31m`, ""},
		{"--addr " + s.http + " new.yaml", exitOK, "Not included\n  Events before 2", ""},
		{"--addr " + s.http + " old.yaml", exitOK, "no difference\n", ""},
		{"--addr " + s.http + " --top 1 new.yaml", exitOK, "and 1 more; --top", ""},
		{"--addr " + s.http + " --protect others new.yaml", exitOK, "newly refused: 2 events", ""},
		{"--addr " + s.http + " --protect ours new.yaml", exitProtected, "Protected keys that are banned for longer", "the new rules refuse or ban protected keys"},
		{"--addr " + s.http + " --protect bytes new.yaml", exitUsage, "", "must be UTF-8 with --addr"},
		{"--addr " + s.http + " --key nothing new.yaml", exitInput, "", `unknown field "nothing"`},
		{"--addr " + s.http + " --top 1001 new.yaml", exitInput, "", "must be 1 to 1000"},
		{"--addr " + s.http + " wrong.yaml", exitUsage, "", "wrong.yaml:2:9: limits: "},
		{"--addr " + s.http + " old.yaml new.yaml", exitUsage, "", "2 arguments: must be the new rules file alone with --addr"},
		{"--addr " + s.http + " --since -2h new.yaml", exitUsage, "", "--since: must not be given with --addr"},
		{"--addr 127.0.0.1:1 new.yaml", exitInput, "", "no connection"},
		{"--token-file t old.yaml new.yaml log", exitUsage, "", "--token-file: must be given with --addr"},
	} {
		args := strings.Fields(x.args)
		for i, arg := range args {
			if strings.HasSuffix(arg, ".yaml") || i > 0 && args[i-1] == "--protect" {
				args[i] = path(arg)
			}
		}
		code, stdout, stderr := diff(args...)
		if code != x.code || !strings.Contains(stdout, x.stdout) || !strings.Contains(stderr, x.stderr) || strings.ContainsRune(stdout+stderr, '\x1b') {
			t.Errorf("%s: exit code %d\n%s%s", x.args, code, stdout, stderr)
		}
	}
}
