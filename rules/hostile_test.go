package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/rule/yamlfile"
)

// TestHostileFiles reads large files that are made to exhaust the stack, the
// memory or the time of a parser. Each is either a file or Errors; a reader
// that does not survive them ends or hangs the test.
func TestHostileFiles(t *testing.T) {
	repeat := func(s string) string { return strings.Repeat(s, yamlfile.MaxSize/len(s)) }
	grow := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < yamlfile.MaxSize-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	files := map[string]string{
		"brackets":         repeat("["),
		"closing brackets": repeat("]"),
		"bracket pairs":    repeat("[]"),
		"braces":           repeat("{a: "),
		"dashes":           repeat("- "),
		"question marks":   repeat("? "),
		"colons":           repeat(": "),
		"tight colons":     repeat("a:"),
		"keys":             grow("k%d: v\n"),
		"flow keys":        "{" + grow("k%d: v, ") + "}",
		"same key":         repeat("a: b\n"),
		"indented keys":    "limits:\n" + grow("- name: k%d\n  key: [client]\n"),
		"lists in lists":   repeat("- - - - - - -\n"),
		"maps in lists":    "limits:\n" + repeat("- {}\n"),
		"counters":         "version: 1\ncounters:\n" + grow("  k%d:\n    key: path\n"),
		"long list":        "version: 1\nallow: [" + repeat("a,") + "]",
		"anchors":          repeat("&a "),
		"aliases":          repeat("*a "),
		"tags":             repeat("!a "),
		"alias bomb":       "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nversion: 1\n",
		"merge":            "a: &a {version: 1}\n<<: *a\n",
		"documents":        repeat("---\n"),
		"document ends":    repeat("...\n"),
		"comments":         repeat("# x\n"),
		"quotes":           repeat("\""),
		"escapes":          `a: "` + repeat(`\"`) + `"`,
		"newlines":         repeat("\n"),
		"spaces":           repeat(" "),
		"tabs":             repeat("\t"),
		"literal":          "a: |\n" + repeat("  x\n"),
		"literals":         repeat("- |\n  x\n"),
		"one word":         "version: " + repeat("x"),
		"one number":       "version: " + repeat("9"),
		"name":             "version: 1\nlimits:\n- name: " + repeat("x"),
		"duration":         "version: 1\nhot:\n- hold: " + repeat("1s"),
		"ladder":           ladder(),
		"percent":          repeat("%"),
		"carriage returns": repeat("a: b\r"),
	}
	longest := yamlfile.MaxTokens - 100 // the most that is parsed
	if testing.Short() {
		longest /= 4
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			content = content[:min(len(content), longest)]
			f, err := Parse("rules.yaml", []byte(content))
			checkResult(t, f, err)
			if err == nil {
				t.Errorf("a hostile file was taken")
			}
		})
	}
}

// TestLargestFiles reads files of the largest size, which are refused before
// they are parsed unless they have few words.
func TestLargestFiles(t *testing.T) {
	for _, part := range []string{"[", "- - - - - - -\n", "a: b\n", "x", "# x\n"} {
		f, err := Parse("rules.yaml", []byte(strings.Repeat(part, yamlfile.MaxSize/len(part))))
		checkResult(t, f, err)
		if err == nil {
			t.Errorf("%q, repeated, was taken", part)
		}
	}
}

// ladder is mappings that are each a column deeper than the last, without end.
func ladder() string {
	var b strings.Builder
	for i := 0; b.Len() < yamlfile.MaxSize-2000; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// checkResult checks what holds of every result of Parse.
func checkResult(t *testing.T, f *File, err error) {
	t.Helper()
	if err == nil {
		if f == nil || f.Limits == nil {
			t.Errorf("a file without error is incomplete: %+v", f)
		}
		return
	}
	errs, ok := errors.AsType[Errors](err)
	switch {
	case f != nil:
		t.Errorf("there is a file besides the error %v", err)
	case !ok || len(errs) == 0:
		t.Errorf("the error is a %T of %d; want Errors of at least one", err, len(errs))
	}
	for i, e := range errs {
		if e.Line < 1 || e.Column < 1 || e.Message == "" || strings.Contains(e.Message, "\n") || e.File == "" {
			t.Errorf("error %d is incomplete: %+v", i, *e)
		}
		if i > 0 && (errs[i-1].Line > e.Line || errs[i-1].Line == e.Line && errs[i-1].Column > e.Column) {
			t.Errorf("error %d at %d:%d comes after one at %d:%d", i, e.Line, e.Column, errs[i-1].Line, errs[i-1].Column)
		}
	}
}
