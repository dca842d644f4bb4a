package latelyhttp_test

import (
	"os"
	"strings"
	"testing"
)

// The README shows how to limit a handler in at most 12 lines, and these are lines of
// ExampleNew, but for the address that it serves.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(readme), "```go\nlimiter, err := ratelimit.New(")
	block, _, closed := strings.Cut("limiter, err := ratelimit.New("+after, "```")
	if !ok || !closed {
		t.Fatal("the README has no block that begins with ratelimit.New")
	}
	lines := strings.SplitAfter(strings.TrimSuffix(block, "\n"), "\n")
	if len(lines) > 12 {
		t.Errorf("the README needs %d lines, want at most 12", len(lines))
	}
	last := len(lines) - 1
	if want := "\t" + strings.Join(lines[:last], "\t"); !strings.Contains(string(example), want) {
		t.Errorf("ExampleNew does not have these lines of the README:\n%s", want)
	}
	if !strings.Contains(lines[last], "limits.Wrap(mux)") || !strings.Contains(string(example), "limits.Wrap(mux)") {
		t.Errorf("the last line is %q, want one that serves limits.Wrap(mux)", lines[last])
	}
}
