package server

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// A file on the allow list is read again when it changes, without a command. A version with a mistake leaves the list in
// force, and is logged.
func TestConcurrentAllowFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("cdn.txt", "192.0.2.0/24\n")
	rules := write("rules.yaml", "version: 1\nlimits: [{name: none, key: client, limit: 0 per 1m}]\nallow: {files: cdn.txt}\n")
	var log bytes.Buffer
	s := must.Get(New(Config{RESP: "127.0.0.1:0", HTTP: Off, RulesFiles: []string{rules, write("more.yaml", "version: 1\n")}, RulesPoll: 10 * time.Millisecond}, "test", slog.New(slog.NewTextHandler(&log, nil))))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	allowed := func(client string) bool {
		var e match.Event
		e.SetString(match.Client, client)
		return s.engine.Limiter().Peek(&e).Allowed
	}
	if !allowed("192.0.2.1") || allowed("198.51.100.1") {
		t.Error("the first version is not in force")
	}
	write("cdn.txt", "198.51.100.0/24\n")
	eventually(t, "the next version is in force", func() bool { return !allowed("192.0.2.1") && allowed("198.51.100.1") })
	write("cdn.txt", "203.0.113.0/24\n203.0.113\n")
	eventually(t, "the mistake is reported", func() bool { return strings.Contains(s.engine.Status().Rules.Error, "cdn.txt:2:1: ") })
	more := s.config.RulesFiles[1]
	write("more.yaml", "version: 1\nlimits: [{name: none, key: client, limit: 0 per 1m}]\n")
	write("cdn.txt", "203.0.113.0/24\n")
	eventually(t, "the mistake in the second file is reported", func() bool {
		return strings.Contains(s.engine.Status().Rules.Error, more+`:2:17: name: "none": must be unique among rules and counters, and `+rules+":2 has it")
	})
	if !allowed("198.51.100.1") || allowed("203.0.113.1") {
		t.Error("the version with a mistake changed the list")
	}
	write("more.yaml", "version: 1\n")
	eventually(t, "the mended version is in force", func() bool {
		return !allowed("198.51.100.1") && allowed("203.0.113.1") && s.engine.Status().Rules.Error == ""
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "level=WARN") {
		t.Errorf("a reload warns:\n%s", log.String())
	}
	for _, want := range []string{`changed="allow list"`, `level=ERROR msg="reload failed; the old rules and files stay in force"`, "cdn.txt:2:1: "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
}
