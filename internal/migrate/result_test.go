package migrate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

var update = flag.Bool("update", false, "rewrite the files of testdata that are expected")

// TestFiles has a file of each tool with the rules file that it becomes. For each line of it
// that a rule does not express there is a note.
func TestFiles(t *testing.T) {
	for name, of := range map[string]func(...Source) *Result{"jail.local": Fail2ban, "nginx.conf": Nginx, "ratelimit.yaml": Envoy} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		got := of(Source{name, data}).Rules
		golden := filepath.Join("testdata", name+".rules.yaml")
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s becomes, %v:\n%s", name, err, got)
		}
		if _, err := rules.Parse(name, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// limiter returns a limiter of a result, of which no rule is in shadow mode.
func limiter(t *testing.T, r *Result) *ratelimit.Limiter {
	t.Helper()
	f, err := rules.Parse("rules.yaml", []byte(strings.ReplaceAll(string(r.Rules), ", mode: shadow", "")))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ratelimit.NewLimiter(f.Limits, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func seed(f *testing.F, name string) {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for line := range strings.Lines(string(data)) {
		f.Add([]byte(line))
	}
}

// check has what is true of any input: the rules file is valid and says where each note is
// from, and a second run makes the same.
func check(t *testing.T, of func(...Source) *Result, data []byte) {
	r := of(Source{"f", data})
	if _, err := rules.Parse("rules.yaml", r.Rules); err != nil {
		t.Fatalf("%v\n%s", err, r.Rules)
	}
	for _, n := range r.Notes {
		if n.File != "f" || n.Line < 1 || n.Line > strings.Count(string(data), "\n")+1 || n.Text == "" {
			t.Errorf("%+v", n)
		}
	}
	if again := of(Source{"f", data}); string(again.Rules) != string(r.Rules) {
		t.Errorf("one run makes\n%s\nand another\n%s", r.Rules, again.Rules)
	}
}
