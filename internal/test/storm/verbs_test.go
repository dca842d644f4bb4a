//go:build linux

package storm

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestEveryVerb checks that the traffic has exactly the commands and routes of docs/server.md,
// whose tables come from the program.
func TestEveryVerb(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(root(t), "docs", "server.md")))(t)
	_, page, _ := strings.Cut(string(text), "\n## RESP\n")
	table, rest, _ := strings.Cut(page, "\n## HTTP\n")
	var names, paths []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z.]+)[ `]").FindAllStringSubmatch(table, -1) {
		if name := strings.ToLower(row[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	table, _, _ = strings.Cut(rest, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z, ]+) (/[^`]*)`").FindAllStringSubmatch(table, -1) {
		for method := range strings.SplitSeq(row[1], ", ") {
			paths = append(paths, method+" "+row[2])
		}
	}
	if len(names) < 30 || len(paths) < 30 {
		t.Fatalf("%d commands and %d routes in docs/server.md", len(names), len(paths))
	}
	same(t, names, commands)
	same(t, paths, routes)
}

// same checks that the documented verbs and the verbs of the traffic are the
// same.
func same[V any](t *testing.T, documented []string, traffic map[string]V) {
	t.Helper()
	for _, name := range documented {
		if !has(traffic, name) {
			t.Errorf("%s is not in the traffic of storms", name)
		}
	}
	for name := range traffic {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is in the traffic of storms, and not in docs/server.md", name)
		}
	}
}
