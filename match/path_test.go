package match

import (
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// cleanReference is Event.CleanPath as its documentation has it: cut, decode,
// then resolve the segments one by one.
func cleanReference(p string) string {
	if p == "" {
		return ""
	}
	p, _, _ = strings.Cut(p, "?")
	p, _, _ = strings.Cut(p, "#")
	if p == "" {
		return "/"
	}
	if scheme, rest, ok := strings.Cut(p, "://"); ok && scheme != "" && !strings.ContainsAny(scheme, "/\\") {
		p = "/"
		if slash := strings.IndexAny(rest, "/\\"); slash >= 0 {
			p = rest[slash:]
		}
	}
	var d strings.Builder
	for i := 0; i < len(p); i++ {
		if i+2 < len(p) && p[i] == '%' {
			if s, err := url.PathUnescape(p[i : i+3]); err == nil {
				d.WriteString(s)
				i += 2
				continue
			}
		}
		d.WriteByte(p[i])
	}
	rest, ok := strings.CutPrefix(d.String(), "/")
	if !ok {
		return d.String()
	}
	var kept []string
	segments := strings.Split(rest, "/")
	for _, s := range segments {
		switch s {
		case "", ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
		}
	}
	// A path that ends in a removed segment ends in the '/' before it.
	switch segments[len(segments)-1] {
	case "", ".", "..":
		kept = append(kept, "")
	}
	return "/" + strings.TrimPrefix(strings.Join(kept, "/"), "/")
}

func clean(p string) string {
	var e Event
	e.SetString(Path, p)
	return string(e.CleanPath())
}

func TestCleanPath(t *testing.T) {
	for p, want := range map[string]string{
		"":                        "",
		"/":                       "/",
		"/a/b":                    "/a/b",
		"/a/b/":                   "/a/b/",
		"//a///b//":               "/a/b/",
		"/./a/./b/.":              "/a/b/",
		"/a/../b":                 "/b",
		"/a/b/..":                 "/a/",
		"/..":                     "/",
		"/../../etc/passwd":       "/etc/passwd",
		"/a/..b/...":              "/a/..b/...",
		"/.well-known/x":          "/.well-known/x",
		"/%61dmin":                "/admin",
		"/%41%2f%2e%2E%2Fb":       "/b",
		"%2Fadmin":                "/admin",
		"/%2561":                  "/%61", // once
		"/%":                      "/%",
		"/%4":                     "/%4",
		"/%zz%4g":                 "/%zz%4g",
		"/%00\xff":                "/\x00\xff",
		"/a%20b+c":                "/a b+c",
		"*":                       "*",
		"host:443":                "host:443",
		"a/../%62":                "a/../b",
		"/login;x=1/../../admin":  "/admin",
		"/login?x=1":              "/login",
		"/login#x":                "/login",
		"#x":                      "/", // an event with a path has a key
		"/login%23x%3Fy":          "/login#x?y",
		`/x\..\login`:             `/x\..\login`,
		"http://example.com/a/..": "/",
		"http://example.com":      "/",
		"HTTP://h:80/a?b":         "/a",
		"/a://b/c":                "/a:/b/c",
		"://b/c":                  "://b/c",
	} {
		if got := clean(p); got != want {
			t.Errorf("CleanPath of %q is %q; want %q", p, got, want)
		}
		if got := cleanReference(p); got != want {
			t.Errorf("the reference cleans %q to %q; want %q", p, got, want)
		}
	}
}

// TestCleanPathExhaustively cleans all paths of up to 8 bytes over an alphabet
// that has everything that matters, and compares with path.Clean, which differs
// only in dropping a '/' at the end.
func TestCleanPathExhaustively(t *testing.T) {
	for _, w := range words("/.a", 8) {
		got := clean(w)
		if want := cleanReference(w); got != want {
			t.Fatalf("CleanPath of %q is %q; want %q", w, got, want)
		}
		if !strings.HasPrefix(w, "/") {
			continue
		}
		trimmed := got
		if len(got) > 1 {
			trimmed = strings.TrimSuffix(got, "/")
		}
		if want := path.Clean(w); trimmed != want {
			t.Fatalf("CleanPath of %q is %q; path.Clean has %q", w, got, want)
		}
	}
	for _, w := range words("/%2eF", 6) {
		if got, want := clean(w), cleanReference(w); got != want {
			t.Fatalf("CleanPath of %q is %q; want %q", w, got, want)
		}
	}
}

func TestCleanPathRandom(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"/", "//", ".", "..", "...", "a", "bc", "%2e", "%2F", "%", "%25", "%C3%A9", "é", "?", "#", "\\", "%5c", "x://", "\x00"}
	var e Event // reused, so that its scratch is
	for range 50_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		e.SetString(Path, b.String())
		if got, want := string(e.CleanPath()), cleanReference(b.String()); got != want {
			t.Fatalf("seed %d: CleanPath of %q is %q; want %q", seed, b.String(), got, want)
		}
	}
}

// TestCleanPathStays checks that the path as sent is not changed, that a second
// call returns the same, and that a new path is cleaned again.
func TestCleanPathStays(t *testing.T) {
	var e Event
	sent := []byte("/a/../b")
	e.Set(Path, sent)
	for range 2 {
		if got := string(e.CleanPath()); got != "/b" {
			t.Errorf("CleanPath is %q; want /b", got)
		}
	}
	if string(sent) != "/a/../b" || string(e.Get(Path)) != "/a/../b" {
		t.Errorf("the path as sent is now %q", sent)
	}
	e.SetNamed("path", []byte("/%63"))
	if got := string(e.CleanPath()); got != "/c" {
		t.Errorf("CleanPath of the second path is %q; want /c", got)
	}
	e.Reset()
	if got := e.CleanPath(); len(got) != 0 {
		t.Errorf("CleanPath after Reset is %q", got)
	}
}

func TestCleanPathDoesNotAllocate(t *testing.T) {
	var e Event
	for _, p := range []string{"/a/b", "/a/../b//%63", strings.Repeat("/x/..", 100)} {
		e.SetString(Path, p)
		e.CleanPath() // grows the scratch
		if n := testing.AllocsPerRun(100, func() {
			e.SetString(Path, p)
			e.CleanPath()
		}); n != 0 {
			t.Errorf("cleaning %q allocates %v times", p, n)
		}
	}
}
