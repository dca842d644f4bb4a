package deptest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/internal/test/must"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// corpora returns a sentence for each fuzz target without a committed input, and for each folder of
// inputs without a target.
func corpora(fsys fs.FS) (wrong []string, err error) {
	files, err := load(fsys)
	if err != nil {
		return nil, err
	}
	targets := map[string]bool{}
	for _, f := range files {
		for _, m := range fuzzTarget.FindAllStringSubmatch(f.text, -1) {
			folder := path.Join(path.Dir(f.name), "testdata/fuzz", m[1])
			targets[folder] = true
			if inputs, err := fs.ReadDir(fsys, folder); err != nil || len(inputs) == 0 {
				wrong = append(wrong, fmt.Sprintf("%s: %s has no input in %s: must have some that reach different branches", f.name, m[1], folder))
			}
		}
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case name != "." && ignoredName(path.Base(name)):
			return fs.SkipDir
		case strings.HasSuffix("/"+path.Dir(name), "/testdata/fuzz") && !targets[name]:
			wrong = append(wrong, fmt.Sprintf("%s: inputs of no fuzz target: must be deleted, or renamed as the target is", name))
		}
		return nil
	})
	return wrong, err
}

func TestFuzzCorpora(t *testing.T) {
	wrong := must.Get(corpora(os.DirFS(root)))(t)
	for _, sentence := range wrong {
		t.Error(sentence)
	}
}

func TestPlantedFuzzTargetsAreFound(t *testing.T) {
	wrong := must.Get(corpora(fstest.MapFS{
		"a/a_test.go":                 {Data: []byte("package a\n\nfunc FuzzA(f *testing.F) {}\n\nfunc FuzzB(f *testing.F) { fuzz(f) }\n\nfunc FuzzyNot(t *testing.T) {}\n")},
		"a/testdata/fuzz/FuzzA/x":     {},
		"a/testdata/fuzz/FuzzGone/x":  {},
		"b/b_test.go":                 {Data: []byte("package b\n\nfunc FuzzA(t *testing.F) {}\n")},
		"testdata/fuzz/FuzzA/x":       {},
		".git/testdata/fuzz/FuzzX/x":  {},
		"a/testdata/other/FuzzGone/x": {},
	}))(t)
	want := []string{"a/a_test.go: FuzzB has no input", "b/b_test.go: FuzzA has no input", "a/testdata/fuzz/FuzzGone: ", "testdata/fuzz/FuzzA: "}
	if !slices.EqualFunc(wrong, want, strings.HasPrefix) {
		t.Errorf("found:\n%s", strings.Join(wrong, "\n"))
	}
}
