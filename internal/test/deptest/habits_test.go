package deptest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// traces are strings that name the machine a file was written on. Tests may
// contain them, in the paths of requests.
var traces = []string{"/root/", "/home/", "/Users/", "/tmp/", `C:\`}

// habits returns a sentence for each breach of a rule that the compiler does not
// check: no init functions, no runtime internals, every exported name documented,
// no file outside the repository and no path of one machine.
func habits(files []source) []string {
	var wrong []string
	add := func(f source, what string) { wrong = append(wrong, fmt.Sprintf("%s: %s", f.name, what)) }
	for _, f := range files {
		if !f.test && f.inits > 0 {
			add(f, "func init: nothing may happen on import")
		}
		if strings.Contains(f.text, "//go:"+"linkname") {
			add(f, "linkname: no internals of the runtime")
		}
		if f.test {
			continue
		}
		for _, name := range f.bare {
			add(f, name+" has no doc comment")
		}
		if strings.Contains(f.text, "../shared") {
			add(f, "only tests may look outside the repository, and skip when nothing is there")
		}
		for _, trace := range traces {
			if strings.Contains(f.text, trace) {
				add(f, fmt.Sprintf("has %q, a path of one machine", trace))
			}
		}
	}
	return wrong
}

func TestHabits(t *testing.T) {
	files := loadModule(t)
	for _, sentence := range habits(files) {
		t.Error(sentence)
	}
	checkout := must.Get(filepath.Abs(root))(t)
	for _, f := range files {
		if strings.Contains(f.text, `"`+checkout) {
			t.Errorf("%s: has the path of this checkout, %s", f.name, checkout)
		}
	}
}

func TestPlantedHabitsAreFound(t *testing.T) {
	files := mustLoad(t, sources{
		"a/a.go":      "// Package a is good.\npackage a\n\ntype t int\n\nfunc (t) init() {}\n",
		"a/b.go":      "package a\n\nfunc init() {}\n",
		"b/b.go":      "//go:build linux\n\npackage b\n\nconst dir = \"../shared/data\"\n",
		"b/b_test.go": "package b\n\nconst dir2 = \"../shared/data\"\n\nfunc init() {}\n",
		"d/d.go": "// Package d has bare names.\npackage d\n\ntype T struct{}\n\nfunc (*T) M() {}\n\nfunc F() {}\n\nconst C = 1\n\n" +
			"type u[K any] int\n\nfunc (u[K]) M() {}\n\n// Vs.\nvar (\n\tV = 1\n)\n\nconst (\n\tD = 1 // one\n\tE = 1\n\tg = 2\n)\n",
		"c/c.go": "// Package c is bad.\npackage c\n\nconst dir = \"/home/me\"\n\n//go:" + "linkname x y\n",
	})
	got := habits(files)
	want := []string{
		"a/b.go: func init", "b/b.go: only tests", "c/c.go: linkname", `c/c.go: has "/home/"`,
		"d/d.go: T has", "d/d.go: M has", "d/d.go: F has", "d/d.go: C has", "d/d.go: E has",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("breaches found:\n%s\nwant these:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
