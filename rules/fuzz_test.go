package rules

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/test/must"
)

// FuzzParse checks that Parse never panics and that its result is complete: a file whose rules have sentences, or errors
// with positions, in order.
func FuzzParse(f *testing.F) {
	files := must.Get(filepath.Glob("testdata/*.yaml"))(f)
	for _, path := range files {
		data := must.Get(os.ReadFile(path))(f)
		f.Add(data)
	}
	for _, m := range mistakes {
		f.Add([]byte(m.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("rules.yaml", data)
		checkResult(t, file, err)
		if err != nil {
			return
		}
		for _, s := range file.Sentences() {
			if len(s) < len("a: b.") {
				t.Errorf("a sentence is %q", s)
			}
		}
		for _, name := range file.Fields() {
			if _, err := rulevalue.Name(name); err != nil {
				t.Errorf("a field is %q", name)
			}
		}
	})
}

// FuzzParseDuration checks that an accepted duration is in range and is read again from its own text.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"60s", "1h30m", "7d", "1.5w", "9999999999h", "1µs", "60", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := rulevalue.ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := rulevalue.ParseDuration(rulevalue.FormatDuration(d)); err != nil || again != d {
			t.Errorf("%q is %v, written %q, read as %v, %v", s, d, rulevalue.FormatDuration(d), again, err)
		}
	})
}
