package middleware

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/test/randtest"
)

func TestSingle(t *testing.T) {
	for want, values := range map[string][]string{
		"": nil, "a": {"a"}, "b": {"b", "b"}, intake.Ambiguous: {"a", "b"},
	} {
		if got := Single(values); got != want {
			t.Errorf("%q: %q; want %q", values, got, want)
		}
	}
	if got := Single([]string{"", "a"}); got != intake.Ambiguous {
		t.Errorf("an empty header beside another: %q", got)
	}
}

// TestCookieAsNetHTTP compares with net/http, which returns all cookies of a name: the one value, or that they differ.
func TestCookieAsNetHTTP(t *testing.T) {
	rnd := randtest.New(t)
	pieces := []string{"a", "b", "aa", "=", ";", "; ", " ", "\t", `"`, "1", "x y", "\\", "\x7f", "é", ",", "a=1", `a="2"`, "a=1", "; a=1", ""}
	seen := map[string]bool{}
	for range 20_000 {
		r := &http.Request{Header: http.Header{}}
		for range rnd.IntN(3) {
			var line strings.Builder
			for range rnd.IntN(10) {
				line.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			r.Header["Cookie"] = append(r.Header["Cookie"], line.String())
		}
		want := ""
		for _, c := range r.CookiesNamed("a") {
			if c.Value != "" && want != "" && c.Value != want {
				want = intake.Ambiguous
			} else if c.Value != "" && want == "" {
				want = c.Value
			}
		}
		seen[want] = true
		if got := Cookie(r.Header["Cookie"], "a"); got != want {
			t.Fatalf("%q: the cookie is %q; want %q", r.Header["Cookie"], got, want)
		}
	}
	if !seen[intake.Ambiguous] || !seen["1"] || !seen[""] {
		t.Errorf("the random headers had only %v", seen)
	}
}

func TestBearer(t *testing.T) {
	for line, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER\tabc": "abc", " Bearer  abc ": "abc",
		"Bearer": "", "Bearer ": "", "Bearerabc": "", "Basic abc": "", "": "", "Bearer-x abc": "",
		"Bearer a b": intake.Ambiguous, "Bearer a\tb": intake.Ambiguous,
	} {
		if got := Bearer([]string{line}); got != want {
			t.Errorf("%q: %q; want %q", line, got, want)
		}
	}
	for _, lines := range [][]string{{"Bearer a", "Bearer b"}, {"Basic x", "Bearer a"}, {"Bearer a", "Basic x"}} {
		if got := Bearer(lines); got != intake.Ambiguous {
			t.Errorf("%q: %q", lines, got)
		}
	}
	if got := Bearer(nil); got != "" {
		t.Errorf("without a header: %q", got)
	}
}

func TestParameter(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "page=1": "1", "x=2&page=1": "1", "page=": "", "page": "", "p%61ge=%31": "1", "page=a+b": "a b", "page=%zz": "%zz",
		"page=1&page=1": "1", "page=1&page=2": intake.Ambiguous, "page=&page=2": "2", "Page=1": "", "page=1;page=2": "1;page=2",
		"page=1&page=2&page=2": intake.Ambiguous, "&&page=1&&": "1", "page==": "=",
	} {
		if got := Parameter(query, "page"); got != want {
			t.Errorf("%q: %q; want %q", query, got, want)
		}
	}
}

// FuzzParts gives the readers of requests hostile bytes. A single value according to net/http and net/url is found, unless
// the request is ambiguous.
func FuzzParts(f *testing.F) {
	f.Add("sid=a; sid=b", "sid=c", "Bearer t", "page=1&page=%32")
	f.Add(`sid="a`, ";;;=", "bearer  ", "page=%&page=+")
	f.Add(strings.Repeat("sid=", 1000), "\x00", "Bearer "+strings.Repeat("x", 100_000), strings.Repeat("&page", 1000))
	f.Fuzz(func(t *testing.T, line, other, authorization, query string) {
		r := &http.Request{Header: http.Header{"Cookie": {line, other}}}
		got := Cookie(r.Header["Cookie"], "sid")
		if c, err := r.Cookie("sid"); err == nil && c.Value != "" && got != c.Value && got != intake.Ambiguous {
			t.Errorf("cookies %q: %q; want %q", r.Header["Cookie"], got, c.Value)
		}
		if token := Bearer([]string{authorization}); token != intake.Ambiguous && (!strings.Contains(authorization, token) || strings.ContainsAny(token, " \t")) {
			t.Errorf("%q: the token is %q", authorization, token)
		}
		if values, err := url.ParseQuery(query); err == nil {
			if want := values.Get("page"); want != "" && Parameter(query, "page") != want && len(values["page"]) < 2 {
				t.Errorf("%q: %q; want %q", query, Parameter(query, "page"), want)
			}
		}
	})
}
