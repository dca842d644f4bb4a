package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/accesslogtest"
)

// The commands of the README that talk to a server answer what it says they do, after
// the `make run` that it begins with, under the rules that it shows.
func TestReadmeCommands(t *testing.T) {
	for _, tool := range []string{"redis-cli", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP commands of the README: there is no %s here", tool)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	recipe, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(recipe), "\nrun: build ")
	_, after, _ = strings.Cut(after, "\n\tbin/lately serve --rules ")
	name, _, _ := strings.Cut(after, "\n")
	example, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatalf("make run starts without the rules of an example: %v", err)
	}
	if shown := block(t, string(text), "yaml"); !strings.HasSuffix(string(example), shown) {
		t.Errorf("%s is not the rules file of the README:\n%s", name, shown)
	}
	s := serve(t, "--rules", filepath.Join(root, name))
	if log := s.log.String(); strings.Contains(log, "WARN") {
		t.Errorf("make run begins with warnings:\n%s", log)
	}
	host, port := split(s.resp)
	n := 0
	for _, part := range strings.Split(block(t, string(text), "console"), "$ ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		line = strings.Replace(line, "redis-cli -p 7379", "redis-cli --no-raw -h "+host+" -p "+port, 1)
		line = strings.Replace(line, "http://", "", 1)
		line = strings.Replace(line, "localhost:7380", strings.TrimPrefix(s.http, "http://"), 1)
		got, err := exec.Command("sh", "-c", line).Output()
		if err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", line, err, got, want)
		}
		n++
	}
	if n < 5 {
		t.Errorf("the README has %d commands", n)
	}
}

// The report that the README shows is that of the demo's log, shortened.
func TestReadmeReport(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "\n    $ lately replay ")
	args, shown, _ := strings.Cut(shown, "\n")
	shown, _, ok := strings.Cut(shown, "\n\nThat is `make demo`")
	if !ok {
		t.Fatal("the README has no report")
	}
	cmd := exec.Command("lately", append([]string{"replay"}, strings.Fields(args)...)...)
	cmd.Dir = t.TempDir()
	var log bytes.Buffer
	z := gzip.NewWriter(&log)
	if _, err := accesslogtest.Write(z, accesslogtest.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.WriteFile(filepath.Join(cmd.Dir, "access.log.gz"), log.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	report, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	rest, n := string(report), 0
	for line := range strings.Lines(shown + "\n") {
		line = strings.TrimPrefix(line, "    ")
		if strings.HasPrefix(line, "replayed in ") {
			continue
		}
		_, after, ok := strings.Cut("\n"+rest, "\n"+line)
		if !ok {
			t.Errorf("the report has no %q where the README has", line)
			continue
		}
		rest = after
		n++
	}
	if n < 20 {
		t.Errorf("%d lines of the README's report are right", n)
	}
}

// block returns the first fenced block of that language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n```"+language+"\n")
	body, _, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed {
		t.Fatalf("the README has no block of %s", language)
	}
	return body + "\n"
}
