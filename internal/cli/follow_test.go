package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

const followRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 3 per 1m}
bans:
  - {name: flood, key: client, after: 5 hits in 1m, for: 1h}
`

// requests returns lines of an access log.
func requests(client string, at time.Time, n int) string {
	line := fmt.Sprintf("%s - - [%s] \"GET / HTTP/1.1\" 200 5\n", client, at.UTC().Format("02/Jan/2006:15:04:05 -0700"))
	return strings.Repeat(line, n)
}

// appendTo appends text to a file.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
	must.Get(f.WriteString(text))(t)
	must.Do(t, f.Close())
}

// Rules in shadow mode, as import writes them, refuse nothing, and follow warns that it does not print their decisions.
func TestFollowDryRunOfShadows(t *testing.T) {
	for mode, want := range map[string]bool{", mode: shadow": true, "": false} {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		appendTo(t, path, "version: 1\nbans:\n  - {name: flood, key: client, after: 1 hits in 1m, for: 1h"+mode+"}\n")
		var out, log bytes.Buffer
		status := run(t.Context(), []string{"follow", "--rules", path, "--dry-run", "-"}, strings.NewReader(requests("192.0.2.1", time.Now(), 3)), &out, &log)
		said := strings.Contains(log.String(), "nothing of rules in shadow mode: flood;")
		if status != 0 || said != want || strings.Contains(out.String(), "banned") == want {
			t.Errorf("with %q: status %d, printed %v, want %v:\n%s%s", mode, status, said, want, out.String(), log.String())
		}
	}
}

// TestFollowDryRun prints refusals and bans of a live log as they happen, and ends with an
// interrupt.
func TestFollowDryRun(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	appendTo(t, path("rules.yaml"), followRules)
	at := time.Now().UTC().Truncate(time.Second)
	appendTo(t, path("access.log"), requests("192.0.2.1", at.Add(-time.Minute), 2))
	for _, flags := range [][]string{nil, {"--json"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		out, in := io.Pipe()
		var log bytes.Buffer
		ended := make(chan int, 1)
		args := append([]string{"follow", "--rules", path("rules.yaml"), "--dry-run", path("access.log")}, flags...)
		go func() {
			ended <- run(ctx, args, nil, in, &log)
			in.Close()
		}()
		client := fmt.Sprintf("192.0.2.%d", 10+len(flags))
		appendTo(t, path("access.log"), requests(client, at, 8))
		when, until := at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)
		want := []string{
			when + " refused per-client " + client,
			when + " refused per-client " + client,
			when + " banned  flood " + client + " until " + until,
		}
		if len(flags) > 0 {
			refused := fmt.Sprintf(`{"time":"%s","outcome":"refused","rule":"per-client","key":["%s"]}`, when, client)
			want = []string{refused, refused, fmt.Sprintf(`{"time":"%s","outcome":"banned","rule":"flood","key":["%s"],"until":"%s"}`, when, client, until)}
		}
		lines := bufio.NewScanner(out)
		for len(want) > 0 && lines.Scan() {
			if !strings.Contains(lines.Text(), client) {
				continue // what the first round wrote
			}
			if lines.Text() != want[0] {
				t.Fatalf("%q, want %q", lines.Text(), want[0])
			}
			want = want[1:]
		}
		interrupt()
		go io.Copy(io.Discard, out)
		if code := <-ended; code != exitOK || len(want) > 0 {
			t.Errorf("exit code %d, missing %q:\n%s", code, want, log.String())
		}
	}
}

// TestFollowRulesOfLogs judges two logs of two formats: a rule for one of them bans no client of the other. A rule for both
// does, with a warning at the start.
func TestFollowRulesOfLogs(t *testing.T) {
	dir := t.TempDir()
	rules, access, auth := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "access.log"), filepath.Join(dir, "auth.log")
	appendTo(t, rules, `version: 1
bans:
  - {name: logins, key: client, when: {log: "**/auth.log"}, after: 4 hits in 1m, for: 1h}
  - {name: all, key: client, after: 4 hits in 1m, for: 1h, mode: shadow}
limits:
  - {name: pages, key: [client, path], limit: 4 per 1m}
`)
	at := time.Now().UTC().Truncate(time.Second)
	appendTo(t, access, requests("192.0.2.1", at.Add(-time.Minute), 5))
	line := at.Format(time.RFC3339) + " host sshd[1]: Failed password for root from 192.0.2.9 port 22 ssh2\n"
	appendTo(t, auth, strings.Repeat(line, 5))
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"follow", "--rules", rules, "--dry-run", access, auth}, nil, in, &log)
		in.Close()
	}()
	var printed []string
	for lines := bufio.NewScanner(out); len(printed) < 2 && lines.Scan(); {
		printed = append(printed, lines.Text())
	}
	interrupt()
	go io.Copy(io.Discard, out)
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d:\n%s", code, log.String())
	}
	want := []string{
		at.Add(-time.Minute).Format(time.RFC3339) + " refused pages 192.0.2.1 /",
		at.Format(time.RFC3339) + " banned  logins 192.0.2.9 until " + at.Add(time.Hour).Format(time.RFC3339),
	}
	if !slices.Equal(printed, want) {
		t.Errorf("printed %q, want %q", printed, want)
	}
	warning := fmt.Sprintf(`rule \"all\" judges the events of logs of different formats, %s (clf) and %s (messages)`, access, auth)
	if text := log.String(); !strings.Contains(text, warning) || strings.Count(text, "different formats") != 1 {
		t.Errorf("the log does not have one warning with %s:\n%s", warning, text)
	}
}

// TestFollowWithoutOutput ends if its output cannot be written.
func TestFollowWithoutOutput(t *testing.T) {
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "access.log")
	appendTo(t, rules, followRules)
	appendTo(t, log, requests("192.0.2.1", time.Now(), 9))
	out, in := io.Pipe()
	out.Close()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"follow", "--rules", rules, "--dry-run", log}, nil, in, &stderr); code != exitInput {
		t.Errorf("exit code %d:\n%s", code, stderr.String())
	}
	if !strings.Contains(stderr.String(), "the output cannot be written") {
		t.Errorf("it prints %s", stderr.String())
	}
}

// TestFollowStdin judges the standard input to its end, here and at a server.
func TestFollowStdin(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	appendTo(t, rules, followRules)
	input := requests("192.0.2.1", time.Now().Truncate(time.Second), 8)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"follow", "--rules", rules, "--dry-run", "-"}, strings.NewReader(input), &stdout, &stderr); code != exitOK || strings.Count(stdout.String(), "\n") != 3 {
		t.Errorf("exit code %d: %s\n%s", code, stdout.String(), stderr.String())
	}
	s := serve(t, "--rules", rules)
	stdout.Reset()
	if code := run(t.Context(), []string{"follow", "--addr", s.http, "--lateness", "5s", "-"}, strings.NewReader(input), &stdout, &stderr); code != exitOK || !strings.HasPrefix(stdout.String(), "events: 8, refused: 5, bans: 1,") {
		t.Errorf("exit code %d: %s\n%s", code, stdout.String(), stderr.String())
	}
}
