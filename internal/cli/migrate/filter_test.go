package migrate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestDirectory has a configuration directory with the expected files. For each word of it that is not in them there is a
// note.
func TestDirectory(t *testing.T) {
	r := Fail2ban(os.DirFS("testdata/conf"), "/etc/lately/patterns")
	var got bytes.Buffer
	got.Write(r.Rules)
	for _, p := range r.Patterns {
		fmt.Fprintf(&got, "\n--- %s\n%s", p.Name, p.Data)
	}
	golden := filepath.Join("testdata", "conf.golden")
	if *update {
		must.Do(t, os.WriteFile(golden, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	if err != nil || got.String() != string(want) {
		t.Errorf("it becomes, %v:\n%s", err, got.String())
	}
	if _, err := rules.Parse("rules", r.Rules); err != nil {
		t.Error(err)
	}
}

// The patterns find what the filters are about, and nothing else.
func TestConvertedPatternsFind(t *testing.T) {
	r := Fail2ban(os.DirFS("testdata/conf"), "")
	for _, test := range []struct{ jail, line, want string }{
		{"shop", "2026-03-02 14:00:01 web shop[7]: login failed from 192.0.2.1", "192.0.2.1"},
		{"shop", "2026-03-02 14:00:01 shop: login failed by ada from shop.example", "shop.example"},
		{"shop", "2026-03-02 14:00:01 shop: login failed by monitor from 192.0.2.1", ""},
		{"shop", "2026-03-02 14:00:01 door: login failed by ada from 192.0.2.1", ""},
		{"shop", "2026-03-02 14:00:01 shop: token refused for ada from [IPv6:2001:db8::1]", "2001:db8::1"},
		{"shop", "2026-03-02 14:00:01 shop: token refused for ada from [192.0.2.1]", "192.0.2.1"},
		{"shop", "2026-03-02 14:00:01 shop: token refused for toolongname from [192.0.2.1]", ""},
		{"shop", "2026-03-02 14:00:01 shop: token refused by bob but valid for ada from [192.0.2.1]", ""},
		{"shop", "2026-03-02 14:00:01 shop: quota 100% used from 192.0.2.1 \"disk\"", "192.0.2.1"},
		{"shop", "2026-03-02 14:00:01 shop: quota 100% used from 192.0.2.1 \"disk", ""},
		{"door", "1772460001 door[3]: closed to 192.0.2.1", "192.0.2.1"},
		{"door", "at 2026-03-02 14:00 door[3]: closed to 192.0.2.1", ""}, // "at " stays in front
		{"door", "1772460001 door[3]: knock of 192.0.2.1", ""},
		{"door", "2026-03-02 14:00:01 door[3]: closed to 192.0.2.1", ""},
	} {
		i := slices.IndexFunc(r.Patterns, func(p PatternFile) bool { return p.Name == test.jail+".regex" })
		var got string
		if all := findings(t, r.Patterns[i], []byte(test.line)); len(all) > 0 {
			got = strings.Fields(all[0])[1]
		}
		if got != test.want {
			t.Errorf("%s: %q: %q, want %q", test.jail, test.line, got, test.want)
		}
	}
}

// FuzzFilter converts any filter: its patterns and the rules file are valid, each note has a
// place, and a second run makes the same.
func FuzzFilter(f *testing.F) {
	for _, name := range []string{"shop", "door", "base", "broken"} {
		data := must.Get(os.ReadFile("testdata/conf/filter.d/" + name + ".conf"))(f)
		f.Add(string(data), "a[mode=strict]")
	}
	f.Add("[INCLUDES]\nbefore=a.conf\nafter=a.local\n[Definition]\nfailregex=<x> <HOST>\nx=<y>\ny=<x>\n[Init]\nx=%(known/x)s\n", "a[x=<y>]")
	f.Fuzz(func(t *testing.T, filter, option string) {
		if strings.ContainsAny(option, "\r\n") {
			return
		}
		dir := fstest.MapFS{
			"jail.conf":          {Data: []byte("[DEFAULT]\nmaxretry=5\nfindtime=10m\nbantime=1h\n[j]\nenabled=true\nfilter=" + option + "\n")},
			"filter.d/a.conf":    {Data: []byte(filter)},
			"filter.d/a.local":   {Data: []byte("[Definition]\nx = y\n")},
			"filter.d/base.conf": {Data: []byte("[DEFAULT]\nkind = text\n")},
		}
		r := Fail2ban(dir, "p")
		if _, err := rules.Parse("rules", r.Rules); err != nil {
			t.Fatalf("%v\n%s", err, r.Rules)
		}
		for _, p := range r.Patterns {
			must.Get(accesslog.ParsePatterns(p.Name, p.Data))(t)
		}
		for _, n := range r.Notes {
			if n.File == "" || n.Line < 1 || n.Text == "" {
				t.Fatalf("%+v", n)
			}
		}
		if len(r.Patterns) == 0 && len(r.Notes) == 0 {
			t.Fatal("a filter is not converted, without a note")
		}
		if again := Fail2ban(dir, "p"); string(again.Rules) != string(r.Rules) {
			t.Errorf("one run makes\n%s\nand another\n%s", r.Rules, again.Rules)
		}
	})
}
