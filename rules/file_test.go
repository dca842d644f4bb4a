package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func load(t *testing.T, path string) *File {
	t.Helper()
	f, err := Load(path)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return f
}

func key(t *testing.T, fold match.Fold, names ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(fold, names...))(t)
	return k
}

// TestCompiled holds what the file of the design is compiled to against rules
// written in Go.
func TestCompiled(t *testing.T) {
	f := load(t, "testdata/design.yaml")
	fold := match.Fold{IPv4: 32, IPv6: 64}
	client := key(t, fold, "client")
	limits := []ratelimit.Rule{
		{
			Name: "per-client", Key: client, Limits: []ratelimit.Limit{{N: 60, Span: time.Minute}},
			Ban: &ratelimit.Ban{After: 20, Of: ratelimit.Refusals, Span: 5 * time.Minute, For: 10 * time.Minute, Factor: 2, Max: 24 * time.Hour},
		},
		{
			Name: "login", Key: key(t, fold, "client", "user"), When: match.When{Method: []string{"POST"}, Path: []string{"/login"}},
			Limits: []ratelimit.Limit{{N: 5, Span: 10 * time.Minute}}, Shadow: true, OnStoreFailure: ratelimit.FailClosed,
		},
		{Name: "flood", Key: client, Ban: &ratelimit.Ban{After: 600, Span: time.Minute, For: time.Hour}},
	}
	if len(f.Limits.Rules()) != len(limits) {
		t.Fatalf("there are %d limits and bans; want %d", len(f.Limits.Rules()), len(limits))
	}
	for i := range limits {
		if got := f.Limits.Rules()[i]; !reflect.DeepEqual(*got, limits[i]) {
			t.Errorf("rule %d is\n%+v\nwant\n%+v", i, *got, limits[i])
		}
	}
	hot := hotkey.Rule{
		Name: "product", Key: key(t, fold, "path"), When: match.When{Path: []string{"/product/*"}},
		Threshold: 500, Span: 2 * time.Second, Hold: time.Minute,
	}
	if len(f.Hot) != 1 || !reflect.DeepEqual(f.Hot[0], hot) {
		t.Errorf("hot is %+v; want %+v", f.Hot[0], hot)
	}
	counters := []Counter{{Name: "requests", Key: client, Spans: []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}}}
	if !reflect.DeepEqual(f.Counters, counters) {
		t.Errorf("counters is %+v; want %+v", f.Counters, counters)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}; !slices.Equal(f.Allow.Clients, want) {
		t.Errorf("allow is %v; want %v", f.Allow, want)
	}
	if f.Fold != fold || f.Name != "testdata/design.yaml" || len(f.Warnings) != 0 {
		t.Errorf("fold is %+v, name %q, warnings %v", f.Fold, f.Name, f.Warnings)
	}
	if want := []string{"client", "method", "path", "user"}; !slices.Equal(f.Fields(), want) {
		t.Errorf("fields is %v; want %v", f.Fields(), want)
	}
}

// TestJudges runs a compiled file: the limit refuses, its refusals ban, and the
// allow list is let through.
func TestJudges(t *testing.T) {
	f := must.Get(Parse("r", []byte("version: 1\nlimits:\n- {name: a, key: client, limit: 2 per 1m, ban: {after: 1 refusal in 1m, for: 1h}}\nallow: 192.0.2.0/24\n")))(t)
	limiter := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
	var got []string
	for i := range 5 {
		for _, client := range []string{"198.51.100.1", "192.0.2.9"} {
			var e match.Event
			e.SetString(match.Client, client)
			d := limiter.TakeAt(time.Unix(int64(i), 0), &e, 1)
			switch {
			case !d.BannedUntil.IsZero():
				got = append(got, "banned")
			case d.Allowed:
				got = append(got, "yes")
			default:
				got = append(got, "no")
			}
		}
	}
	if want := "yes yes yes yes no yes banned yes banned yes"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// TestBorders checks values that are just allowed.
func TestBorders(t *testing.T) {
	long := strings.Repeat("x", 64)
	const fields = "fields: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}, "
	f := must.Get(Parse("r", []byte(fields+long+": {}}\n"+oneLimit("name: "+long, "key: [a, b, c, d, e, f, g, "+long+"]", "limit: [4294967295 per 1ms, 1 per 3650d]",
		"ban: {after: 65535 hits in 1ms, for: 10m, factor: 1000, max: 10m}")+"hot:\n- {name: h, key: path, threshold: 1073741824 per 1ms}\n")))(t)
	r := f.Limits.Rules()[0]
	if r.Limits[0].N != limit.MaxN || r.Limits[1].Span != limit.MaxSpan || r.Ban.After != limit.MaxLog {
		t.Errorf("the rule is %+v", r)
	}
}

// TestFieldsOfAllSections checks that no use of a field is missing.
func TestFieldsOfAllSections(t *testing.T) {
	f := must.Get(Parse("r", []byte(`version: 1
fields: {k1: {}, k2: {}, k3: {}, k4: {}, w1: {}, w2: {}, w3: {}, w4: {}, unused: {cookie: u}}
counters:
  c: {key: k1, spans: 1m, when: {w1: x}}
limits: [{name: l, key: k2, limit: 1 per 1s, when: {w2: x}}]
bans: [{name: b, key: k3, after: 1 hits in 1s, for: 1s, when: {w3: x}}]
hot: [{name: h, key: k4, threshold: 1 per 1s, when: {w4: x}}]
allow: 192.0.2.1
`)))(t)
	if got, want := strings.Join(f.Fields(), " "), "client k1 k2 k3 k4 w1 w2 w3 w4"; got != want {
		t.Errorf("fields are %s; want %s", got, want)
	}
}

func TestZeroRules(t *testing.T) {
	f := load(t, "testdata/zero.yaml")
	if len(f.Limits.Rules()) != 0 || len(f.Hot) != 0 || len(f.Counters) != 0 || len(f.Sentences()) != 0 || len(f.Fields()) != 0 {
		t.Errorf("a file without rules has some: %+v", f)
	}
	if f.Fold != (match.Fold{}) {
		t.Errorf("the fold is %+v; want the default", f.Fold)
	}
}

// TestFoldAfterRules checks that the section client holds for rules that come
// before it.
func TestFoldAfterRules(t *testing.T) {
	f := must.Get(Parse("r", []byte("version: 1\nlimits:\n- {name: a, key: client, limit: 1 per 1s}\nclient: {ipv6: 56}\n")))(t)
	var e match.Event
	e.SetString(match.Client, "2001:db8:1:2ff::1")
	got, ok := f.Limits.Rules()[0].Key.Append(nil, &e)
	if want := "2001:db8:1:200::/56"; !ok || string(got) != want {
		t.Errorf("the key is %q, %t; want %q", got, ok, want)
	}
}

func TestWarnings(t *testing.T) {
	const file = `version: 1
limits:
  - name: a
    key: client
    limit: 1 per 1s
    when: {method: post, client: 0.0.0.0/0}
allow: "::/0"
`
	f := must.Get(Parse("rules.yaml", []byte(file)))(t)
	want := `rules.yaml:6:20: method: "post": methods are compared exactly; did you mean "POST"?
rules.yaml:6:34: client: 0.0.0.0/0: every IPv4 address is in it
rules.yaml:7:8: allow: ::/0: every IPv6 address is in it`
	if f.Warnings.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", f.Warnings, want)
	}
}

// TestValuesAsWritten checks that a value is the same with and without quotes,
// and that none is changed by what YAML takes it for.
func TestValuesAsWritten(t *testing.T) {
	const file = "\ufeffversion: 1\r\nhot:\r\n- {name: 404, key: path, threshold: 5 per 1s, when: {size: [1_000, 0x10, 010, true, 1.50, \"7\"], status: 404}}\r\n- name: |-\r\n    literal\r\n  key: path\r\n  threshold: 5\r\n    per 1s\r\n"
	f := must.Get(Parse("r", []byte(file)))(t)
	first := &f.Hot[0]
	if want := []string{"1_000", "0x10", "010", "true", "1.50", "7"}; !slices.Equal(first.When.Fields["size"], want) {
		t.Errorf("values are %q; want %q", first.When.Fields["size"], want)
	}
	if first.Name != "404" || f.Hot[1].Name != "literal" || f.Hot[1].Threshold != 5 {
		t.Errorf("rules are %+v and %+v", first, f.Hot[1])
	}
}

func TestTooManyRules(t *testing.T) {
	file := func(n int) []byte {
		var b strings.Builder
		b.WriteString("version: 1\nlimits:\n- {name: a, key: client, limit: 1 per 1s}\nbans:\n")
		for i := range n - 1 {
			b.WriteString("- {name: b" + strings.Repeat("x", i%60) + string(rune('0'+i/60%10)) + string(rune('a'+i/600)) + ", key: client, after: 1 hits in 1s, for: 1s}\n")
		}
		return []byte(b.String())
	}
	if _, err := Parse("r", file(1024)); err != nil {
		t.Errorf("the largest number of rules: %v", err)
	}
	_, err := Parse("r", file(1025))
	if want := "r:1028:3: rules: 1025: must be at most 1024"; err == nil || err.Error() != want {
		t.Errorf("one rule too many: %v; want %s", err, want)
	}
}

// TestTooManyKeys checks the limit on the keys of one mapping, in both styles.
func TestTooManyKeys(t *testing.T) {
	for _, style := range []struct{ before, one, after, at string }{
		{"version: 1\ncounters:\n", "  c%d: {key: client, spans: 1m}\n", "", "r:1003:8"},
		{"version: 1\ncounters: {\n", "c%d: {key: client, spans: 1m},\n", "}\n", "r:1003:6"},
	} {
		file := func(n int) []byte {
			b := []byte(style.before)
			for i := range n {
				b = fmt.Appendf(b, style.one, i)
			}
			return append(b, style.after...)
		}
		f, err := Parse("r", file(yamlfile.MaxKeys))
		if err != nil || len(f.Counters) != yamlfile.MaxKeys {
			t.Errorf("the largest number of keys: %v", err)
		}
		_, err = Parse("r", file(yamlfile.MaxKeys+1))
		if want := style.at + ": mapping: too many keys: must be at most 1000"; err == nil || err.Error() != want {
			t.Errorf("one key too many: %v; want %s", err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Errorf("a folder was taken for a file")
	} else if _, ok := errors.AsType[Errors](err); ok {
		t.Errorf("the error of a folder is a list of mistakes: %v", err)
	}
	write := func(data string) string {
		path := filepath.Join(dir, "rules.yaml")
		must.Do(t, os.WriteFile(path, []byte(data), 0o600))
		return path
	}
	_, err := Load(write("version: 3\nlimit: 1\n"))
	errs, ok := errors.AsType[Errors](err)
	if !ok || len(errs) != 2 || errs[0].Line != 1 || errs[0].Column != 10 || filepath.Base(errs[1].File) != "rules.yaml" {
		t.Errorf("two mistakes: %v", err)
	}
	if one, ok := errors.AsType[*Error](err); !ok || one != errs[0] {
		t.Errorf("Unwrap does not lead to the first mistake but to %v", one)
	}
	padding := strings.Repeat("#", yamlfile.MaxSize-len("version: 1\n"))
	if _, err := Load(write("version: 1\n" + padding)); err != nil {
		t.Errorf("the largest file: %v", err)
	}
	_, err = Load(write("version: 1\n" + padding + "#"))
	if want := "rules.yaml: too long: must be at most 1048576 bytes"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a file too large: %v; want %s", err, want)
	}
}
