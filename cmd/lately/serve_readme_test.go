package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the README that talk to a server answer what it says they do,
// under the rules file that it shows.
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
	s := serve(t, "--rules", writeRules(t, block(t, string(text), "yaml")))
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
