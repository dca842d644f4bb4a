package yamlfile_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/yamlfile"
)

// TestReader reads a mapping: good values are found at their places, and mistakes are reported at theirs. The mistakes of
// whole rules files are in package rules.
func TestReader(t *testing.T) {
	var got []string
	r := &yamlfile.Reader{Places: make(map[string]ast.Node), Report: func(line, column int, warning bool, message string) {
		got = append(got, fmt.Sprintf("%d:%d: %t: %s", line, column, warning, message))
	}}
	root := r.Tree("\ufeff# a comment\r\nname: x\r\nsizes: [1, two, 3]\r\nnaem: y\n", 0)
	m := r.Mapping(root, "file", []string{"name: a", "sizes", "limit: 60 per 1m"})
	sizes := yamlfile.All(r, m["sizes"], "sizes", strconv.Atoi)
	r.Warn(m["name"], "name: %s: is short", yamlfile.Describe(m["name"]))
	want := []string{
		`4:1: false: file: unknown key "naem": did you mean name?`,
		`2:1: false: file: missing key limit: must be given, as in "limit: 60 per 1m"`,
		`3:12: false: sizes: "two": strconv.Atoi: parsing "two": invalid syntax`,
		`2:7: true: name: "x": is short`,
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{1, 3}) {
		t.Errorf("sizes %v, reports\n%q\nwant\n%q", sizes, got, want)
	}
	for name, column := range map[string]int{"sizes": 8, "sizes[0]": 9, "sizes[1]": 17} {
		if _, at := yamlfile.Position(r.Places[name]); at != column {
			t.Errorf("%s is found in column %d, want %d", name, at, column)
		}
	}
}

func TestDocuments(t *testing.T) {
	for text, want := range map[string]map[int]string{
		"":                        {0: ""},
		"a: 1\n---\nb: 2\n":       {0: "a: 1\n", 1: "---\nb: 2\n"},
		"---\n# none\n---\na: 1":  {2: "---\na: 1"},
		"a: 1\n---\n...\n---\n\n": {0: "a: 1\n"},
		"a: |\n  ---b\n":          {0: "a: |\n  ---b\n"},
	} {
		got := make(map[int]string)
		for line, doc := range yamlfile.Documents(text) {
			got[line] = doc
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
