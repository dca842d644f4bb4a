package match

import (
	"strings"
	"testing"
)

// globReference is what a pattern means, by recursion over its parts.
func globReference(p, v string) bool {
	switch {
	case p == "":
		return v == ""
	case strings.HasPrefix(p, "**"):
		rest := strings.TrimLeft(p, "*")
		for i := 0; i <= len(v); i++ {
			if globReference(rest, v[i:]) {
				return true
			}
		}
		return false
	case p[0] == '*':
		for i := 0; i <= len(v); i++ {
			if globReference(p[1:], v[i:]) {
				return true
			}
			if i < len(v) && v[i] == '/' {
				break
			}
		}
		return false
	}
	return v != "" && v[0] == p[0] && globReference(p[1:], v[1:])
}

// words returns all words over alphabet of up to n bytes.
func words(alphabet string, n int) []string {
	all, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, w := range last {
			for i := range alphabet {
				next = append(next, w+alphabet[i:i+1])
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestPatternsExhaustively matches every pattern over {a, /, *} of up to 6 bytes
// with every value over {a, /} of up to 6, and longer ones over less.
func TestPatternsExhaustively(t *testing.T) {
	for _, c := range []struct {
		patterns, values []string
	}{
		{words("a/*", 6), words("a/", 6)},
		{words("ab*", 5), words("ab", 6)},
		{words("a*/b", 4), words("a/b", 5)},
	} {
		for _, text := range c.patterns {
			p := newPattern(text)
			for _, v := range c.values {
				if got, want := p.matches([]byte(v)), globReference(text, v); got != want {
					t.Fatalf("%q matches %q: %t; want %t", text, v, got, want)
				}
			}
		}
	}
}

// TestAnyCaseExhaustively compares patterns of any case with the reference, on both in lower case.
func TestAnyCaseExhaustively(t *testing.T) {
	for _, text := range words("aB*/", 4) {
		p := newPattern(anyCase + text)
		for _, v := range words("Ab/", 4) {
			if got, want := p.matches([]byte(v)), globReference(strings.ToLower(text), strings.ToLower(v)); got != want {
				t.Fatalf("%q matches %q in any case: %t; want %t", text, v, got, want)
			}
		}
	}
	for v, want := range map[string]bool{"k[\xc3\x84": true, "K[\xc3\x84": true, "K{\xc3\x84": false, "\u212a[\xc3\x84": false, "k[\xc3\xa4": false} { // ASCII letters only
		if p := newPattern("(?i)K[\xc3\x84"); p.matches([]byte(v)) != want {
			t.Errorf("%q matches: %t", v, !want)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"/login", "/login", true},
		{"/login", "/login/", false},
		{"/login", "/logi", false},
		{"/api/**", "/api/", true},
		{"/api/**", "/api/v1/users", true},
		{"/api/**", "/api", false},
		{"/api/*", "/api/v1", true},
		{"/api/*", "/api/v1/users", false},
		{"/*/users", "/v1/users", true},
		{"/*/users", "/v1/x/users", false},
		{"/**/users", "/v1/x/users", true},
		{"**.php", "/a/b.php", true},
		{"**.php", "/a/b.php5", false},
		{"*.php", "/b.php", false}, // '*' stops at '/'
		{"**", "", true},
		{"*", "", true},
		{"***", "/a/b", true},
		{"/a***", "/a/b", true},
		{"a*b**c*d", "a1b/2/c3d", true},
		{"a*b**c*d", "a1b/2/c/3d", false},
		{"?", "x", false}, // every other byte stands for itself
		{"[a]", "[a]", true},
		{"\xff*", "\xff\xfe", true},
	} {
		p := newPattern(c.pattern)
		if got := p.matches([]byte(c.value)); got != c.want {
			t.Errorf("%q matches %q: %t; want %t", c.pattern, c.value, got, c.want)
		}
	}
}

// TestPatternEffort matches a pattern made to be slow; with more than polynomial time it would not end.
func TestPatternEffort(t *testing.T) {
	for _, unit := range []string{"*a", "**a", "**a*b", "**/*"} {
		p := newPattern(strings.Repeat(unit, 20) + "c")
		if p.matches([]byte(strings.Repeat("ab/a", 500))) {
			t.Errorf("%q matches a value without c", unit)
		}
	}
}

// TestPatternEffortIsLinear matches values that strangers make long; what took
// quadratic time would not end.
func TestPatternEffortIsLinear(t *testing.T) {
	for pattern, unit := range map[string]string{
		"**.php*": ".php", "**a*b*c": "ab", "**a*/b*c": "a", "/**a*b*/c*d": "ab/", "**/*.php": "a/.", "**a*b*c*d": "abc",
	} {
		p := newPattern(pattern)
		if p.matches([]byte("/" + strings.Repeat(unit, 1<<20) + "/bx/")) {
			t.Errorf("%q matches a value without its end", pattern)
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("/api/**", "/api/v1")
	f.Add("a*b**c*d", "a1b/2/c3d")
	f.Add("**/*.php", "/x/y.php")
	f.Add("***", "")
	f.Fuzz(func(t *testing.T, p, v string) {
		// The reference is exponential in the stars.
		if strings.Count(p, "*") > 8 || len(v) > 24 {
			return
		}
		c := newPattern(p)
		if got, want := c.matches([]byte(v)), globReference(p, v); got != want {
			t.Errorf("%q matches %q: %t; want %t", p, v, got, want)
		}
	})
}
