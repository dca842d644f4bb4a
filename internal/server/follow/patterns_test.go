package follow

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestPatternsAreReadAgain changes a file of patterns while a log, and a container's log of a directory, are followed by it: lines from then on are
// read by the new patterns, none is lost or read twice, and a file with mistakes, or none, changes nothing.
func TestPatternsAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file, log, more := filepath.Join(dir, "shop.regex"), filepath.Join(dir, "shop.log"), filepath.Join(dir, "more")
	put := func(path, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	add := func(path, message string) {
		t.Helper()
		f := must.Get(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
		defer f.Close()
		line := "2026-03-02 10:00:00 " + message + "\n"
		if strings.HasPrefix(path, more) {
			line = "2026-03-02T10:00:00Z stdout F " + line
		}
		must.Get(f.WriteString(line))(t)
	}
	put(file, "match ^ failed from <ADDR>$\n")
	must.Do(t, os.Mkdir(more, 0o700))
	var logs []Log
	for path, text := range map[string]string{log: "regex:" + file, more: "docker-json:regex:" + file} {
		format := must.Get(accesslog.ParseFormat(text))(t)
		logs = append(logs, Log{Path: path, Format: format})
	}
	var said bytes.Buffer
	got := map[string]int{}
	f := must.Get(New(Config{Logs: logs, Log: slog.New(slog.NewTextHandler(&said, nil)), Judge: func(ev *match.Event) { got[string(ev.Get(match.Client))]++ }}))(t)
	t.Cleanup(f.close)
	now := time.Now()
	poll := func() {
		for range 3 {
			now = now.Add(2 * discover)
			f.poll(context.Background(), now)
		}
	}
	want := func(what string, failed, refused int) {
		t.Helper()
		for _, path := range []string{log, filepath.Join(more, "a.log")} {
			add(path, "failed from 192.0.2.1")
			add(path, "refused 192.0.2.2")
		}
		add(filepath.Join(more, "new-"+strings.Fields(what)[0]+".log"), "failed from 192.0.2.1") // a log that is found later
		add(filepath.Join(more, "new-"+strings.Fields(what)[0]+".log"), "refused 192.0.2.2")
		poll()
		if got["192.0.2.1"] != 3*failed || got["192.0.2.2"] != 3*refused {
			t.Errorf("%s: %v, want 3 times %d and %d\n%s", what, got, failed, refused, said.String())
		}
		clear(got)
	}
	poll()
	want("at first", 1, 0)
	put(file, "match ^ refused <ADDR>$\n")
	poll()
	want("changed", 0, 1)
	put(file, "match ^ refused (<ADDR>$\n")
	poll()
	want("mistaken", 0, 1)
	if n := strings.Count(said.String(), "the old patterns stay in use"); n != 2 || !strings.Contains(said.String(), "missing closing )") {
		t.Errorf("the log has the mistake %d times, want once for each format:\n%s", n, said.String())
	}
	must.Do(t, os.Remove(file))
	poll()
	want("removed", 0, 1)
	put(file, "match ^ failed from <ADDR>$\nmatch ^ refused <ADDR>$\n")
	poll()
	want("back", 1, 1)
}
