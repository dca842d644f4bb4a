package migrate

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

var update = flag.Bool("update", false, "rewrite the files of testdata that are expected")

// jails is a configuration directory with the text of jail.local, and a filter of any name.
type jails string

func (j jails) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "filter.d/") && strings.HasSuffix(name, ".conf") {
		name = "filter.d/any.conf"
	}
	return fstest.MapFS{"jail.local": {Data: []byte(j)}, "filter.d/any.conf": {Data: []byte("[Definition]\nfailregex = ^failed <HOST>$\n")}}.Open(name)
}

// TestFile has a file with the expected rules file. For each line that no rule expresses there is a note.
func TestFile(t *testing.T) {
	const name = "jail.local"
	data := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	got := Fail2ban(jails(data), "patterns").Rules
	golden := filepath.Join("testdata", name+".golden")
	if *update {
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s becomes, %v:\n%s", name, err, got)
	}
	if _, err := rules.Parse(name, got); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// limiter returns a limiter of a result that has no rule in shadow mode.
func limiter(t *testing.T, r *Result) *ratelimit.Limiter {
	t.Helper()
	f := must.Get(rules.Parse("rules.yaml", []byte(strings.ReplaceAll(string(r.Rules), ", mode: shadow", ""))))(t)
	l := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
	return l
}

// FuzzFail2ban checks any input: the rules file is valid, each note has its line, and a
// second run makes the same.
func FuzzFail2ban(f *testing.F) {
	data := must.Get(os.ReadFile(filepath.Join("testdata", "jail.local")))(f)
	f.Add(data)
	for line := range strings.Lines(string(data)) {
		f.Add([]byte(line))
	}
	f.Fuzz(checkAny)
}

func checkAny(t *testing.T, data []byte) {
	r := Fail2ban(jails(data), "patterns")
	if _, err := rules.Parse("rules.yaml", r.Rules); err != nil {
		t.Fatalf("%v\n%s", err, r.Rules)
	}
	for _, n := range r.Notes {
		if n.File != "jail.local" && n.File != "jail.conf" && !strings.HasPrefix(n.File, "filter.d/") || n.Line < 1 || n.Line > strings.Count(string(data), "\n")+3 || n.Text == "" {
			t.Errorf("%+v", n)
		}
	}
	if again := Fail2ban(jails(data), "patterns"); string(again.Rules) != string(r.Rules) {
		t.Errorf("one run makes\n%s\nand another\n%s", r.Rules, again.Rules)
	}
}
