package rules_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// names returns the names of all rules and counters of f, in their order.
func names(f *rules.File) string {
	var all []string
	for i := range f.Limits.Rules() {
		all = append(all, f.Limits.Rules()[i].Name)
	}
	for i := range f.Hot {
		all = append(all, f.Hot[i].Name)
	}
	for i := range f.Counters {
		all = append(all, f.Counters[i].Name)
	}
	return strings.Join(all, " ")
}

// Several files are one set of rules, each section in the order of the files. Their joined text is the same set, in which
// each allow list file keeps its entries.
func TestLoadSeveral(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, os.Mkdir(at("packs"), 0o700))
	write(t, at("office.txt"), "192.0.2.1\n")
	write(t, at("packs/office.txt"), "192.0.2.2\n192.0.2.3\n")
	write(t, at("a.yaml"), "version: 1\nclient: {ipv4: 24}\nbans: [{name: a, key: client, after: 5 hits in 1m, for: 1h}]\ncounters: {c: {key: client, spans: [1m]}}\nallow: {files: office.txt}") // no line end
	write(t, at("packs/b.yaml"), "\ufeff---\nversion: 1\nallow: {clients: 198.51.100.1, files: office.txt}\nclient: {ipv4: 24}\nlimits: [{name: b, key: client, limit: 5 per 1m}]\nhot: [{name: h, key: path, threshold: 5 per 1s}]\n")
	write(t, at("c.yaml"), "version: 1\nlimits: [{name: l, key: client, limit: 5 per 1m}]\nallow: {files: office.txt}\n...\n")
	f := must.Get(rules.Load(at("a.yaml"), at("packs/b.yaml"), at("c.yaml")))(t)
	if got, want := f.Name, at("a.yaml")+", "+at("packs/b.yaml")+", "+at("c.yaml"); got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
	draft, err := f.Draft("draft", f.Text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, f.Text)
	}
	for _, f := range []*rules.File{f, draft} {
		if got := names(f); got != "b l a h c" {
			t.Errorf("%s: the rules are %s", f.Name, got)
		}
		if f.Fold.IPv4 != 24 || len(f.Allow.Clients) != 1 {
			t.Errorf("%s: %+v, clients %v", f.Name, f.Fold, f.Allow.Clients)
		}
		for client, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": true, "192.0.2.3": true, "192.0.2.4": false, "198.51.100.1": true} {
			var e match.Event
			if e.SetString(match.Client, client); f.Limits.Internal().Allowed(&e) != want {
				t.Errorf("%s: %s is allowed: want %v", f.Name, client, want)
			}
		}
	}
	if e := f.RuleError("l", "cannot be kept"); e.Error() != at("c.yaml")+`:2:17: rule "l": cannot be kept` {
		t.Error(e)
	}
}

// The documents of one file are read as several files.
func TestDocuments(t *testing.T) {
	const a, b = "version: 1\nlimits: [{name: a, key: client, limit: 5 per 1m}]\n", "version: 1\nlimits: [{name: b, key: client, limit: 5 per 1m}]\n"
	for _, between := range []string{"---\n", "--- # b\n", "---\n---\n", "# a\n---\n# b\n\n---\t\n# c\n", "...\n---\n", "---\r\n"} {
		for _, after := range []string{"", "---\n", "---\n...\n", "---", "...\n", "# end"} {
			f, err := rules.Parse("r", []byte("---\n"+a+between+b+after))
			if err != nil || names(f) != "a b" {
				t.Errorf("%q, %q: %v", between, after, err)
			}
			line := 3 + strings.Count(a+between+b, "\n")
			want := fmt.Sprintf("r:%d:17: name: \"a\": must be unique among rules and counters, and line 3 has it", line)
			if _, err := rules.Parse("r", []byte("---\n"+a+between+b+"---\n"+strings.TrimPrefix(a, "version: 1\n")+"version: 1\n"+after)); err == nil || err.Error() != want {
				t.Errorf("%q, %q: got %v, want %s", between, after, err, want)
			}
		}
	}
}

// A mistake in several files has the name of its file, and of the other file if it concerns both.
func TestMistakesInSeveral(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	const limits = "version: 1\nlimits:\n  - {name: x, key: client, limit: 5 per 1m}\n"
	lines := func(n int, text string) string { return strings.Repeat(text, n) }
	for _, c := range []struct{ a, b, want string }{
		{limits, limits, b + `:3:12: name: "x": must be unique among rules and counters, and ` + a + `:3 has it`},
		{limits, "version: 1\ncounters: {x: {key: client, spans: 1m}}\n", a + `:3:12: name: "x": must be unique among rules and counters, and ` + b + `:2 has it`},
		{"version: 1\nclient: {ipv4: 24}\n", "version: 1\nclient: {ipv6: 56}\n", b + `:2:9: client: not as in ` + a + `:2: must be the same in all files, or in one of them`},
		{"version: 1\nfields: {a: {header: X-A}}\n", "version: 1\nfields: {a: {cookie: a}}\n", b + `:2:10: fields: field "a": not as in ` + a + `:2: must be the same in all files, or in one of them`},
		{"version: 1\n", "limits: []\n", b + `:1:1: file: missing key version`},
		{"version: [\n", "version: 2\n", a + `:1:10: syntax error: `},
		{"version: 1\nallow: {files: none}\n", "version: 1\nallow: a\n", a + `:2:16: files: `},
		{"version: 1\nallow: {files: none}\n", "version: 1\nallow: a\n", b + `:2:8: allow: `},
		{"version: 1\n", "# nothing\n", b + `:1:1: file: empty: must be at least "version: 1"`},
		{"version: 1\n" + lines(600, "#"+lines(1000, "-")+"\n"), "version: 1\n" + lines(600, "#"+lines(1000, "-")+"\n"), b + `:1:1: file: too large: must be at most 1048576 bytes, with what is before it`},
		{"version: 1\nallow: [" + lines(30_000, "a,") + "a]\n", "version: 1\nallow: [" + lines(30_000, "a,") + "a]\n", b + `:2:`},
	} {
		write(t, a, c.a)
		write(t, b, c.b)
		f, err := rules.Load(a, b)
		if errs, ok := errors.AsType[rules.Errors](err); !ok || f != nil || !strings.Contains("\n"+errs.Error(), "\n"+c.want) {
			t.Errorf("%.200s\n%.200s\ngot  %.300v\nwant %s", c.a, c.b, err, c.want)
		}
	}
	os.Remove(a)
	os.Remove(b)
	if _, err := rules.Load(a, b); err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("missing files: %v", err)
	}
	if _, err := rules.Load(a, a); err == nil || !strings.HasSuffix(err.Error(), "rules files: "+a+" twice: must be given once") {
		t.Errorf("one file twice: %v", err)
	}
	if _, err := rules.Load(); err == nil || err.Error() != "rules files: none: must be at least one" {
		t.Errorf("no files: %v", err)
	}
}
