package deptest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// concurrent returns a sentence for each file of the packages that match the pattern in which
// the race detector could find something, and for a pattern that no package matches.
func concurrent(files []source, pattern *regexp.Regexp) []string {
	var wrong []string
	matches := false
	for _, f := range files {
		if !pattern.MatchString(f.folder) {
			continue
		}
		matches = true
		if f.starts {
			wrong = append(wrong, f.name+": a go statement")
		}
		for _, p := range f.imports {
			if slices.Contains([]string{"sync", "sync/atomic", "testing/synctest", "unsafe"}, p) {
				wrong = append(wrong, f.name+": imports "+p)
			}
		}
		if strings.Contains(f.text, "t.Parallel"+"()") {
			wrong = append(wrong, f.name+": a parallel test")
		}
	}
	if !matches {
		wrong = append(wrong, fmt.Sprintf("no package matches %s", pattern))
	}
	return wrong
}

// The Makefile leaves packages out of the run under the race detector: each is sequential.
func TestSequentialPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^SEQUENTIAL = (.*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("the Makefile does not say which packages are sequential")
	}
	files := loadModule(t)
	for _, sentence := range concurrent(files, regexp.MustCompile("^("+line[1]+")$")) {
		t.Error(sentence)
	}
	for pattern, want := range map[string]string{"latelyredis": "imports sync", "internal/cli": "a go statement", "latelyhttp": "imports testing/synctest", "match2": "no package"} {
		if got := concurrent(files, regexp.MustCompile("^"+pattern+"$")); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: %q, want a sentence with %q", pattern, got, want)
		}
	}
}
