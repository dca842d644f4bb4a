package console_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/console"
	"github.com/lately-go/lately/internal/test/must"
)

// most is how many bytes all files may have.
const most = 200_000

// forbidden is what no file may have, by the ends of their names.
var forbidden = []struct {
	files, why string
	pattern    *regexp.Regexp
}{
	{".html .svg .js", "an inline handler", regexp.MustCompile(`(?i)<[a-z][^>]*\son[a-z]+\s*=`)},
	{".html .svg .js", "an inline style", regexp.MustCompile(`(?i)<[a-z][^>]*\sstyle\s*=|<style|setAttribute\(\s*['"]style|\{[^}]*\bstyle: ['"]`)},
	{".html .svg .js", "an inline script", regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|<script>|javascript:`)},
	{".js", "text that becomes markup", regexp.MustCompile(`(?i)\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML\w*)\b`)},
	{".js", "text that becomes code", regexp.MustCompile(`\beval\b|\bnew Function\b|\bimport\(|set(?:Timeout|Interval)\(\s*['"` + "`]")},
	{".html .svg .js .css", "an address elsewhere", regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9-]+\.[a-z0-9.-]+|@import|url\(`)},
	{".js .html .css", "an address that is not relative", regexp.MustCompile(`(?i)(?:href|src)\s*[=:]\s*['"]/|fetch\(\s*['"]/`)},
}

// namespace is a name, not an address: it is not requested.
const namespace = "http://www.w3.org/2000/svg"

// violations returns what a file has that it may not have.
func violations(name, text string) (found []string) {
	text = strings.ReplaceAll(text, namespace, "")
	for _, f := range forbidden {
		if !slices.Contains(strings.Fields(f.files), path.Ext(name)) {
			continue
		}
		if at := f.pattern.FindString(text); at != "" {
			found = append(found, fmt.Sprintf("%s has %s: %q", name, f.why, at))
		}
	}
	return found
}

func readAll(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	must.Do(t, fs.WalkDir(console.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(console.Files, name)
		files[name] = string(b)
		return err
	}))
	return files
}

func TestFilesHoldToThePolicy(t *testing.T) {
	sum := 0
	for name, text := range readAll(t) {
		sum += len(text)
		for _, v := range violations(name, text) {
			t.Error(v)
		}
		if strings.ContainsAny(name, "/ ") {
			t.Errorf("%s: files have no folders and plain names", name)
		}
	}
	if sum == 0 || sum > most {
		t.Errorf("the files have %d bytes: must be at most %d", sum, most)
	}
}

// TestForbiddenIsFound plants each fault.
func TestForbiddenIsFound(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a.html", `<button onclick="go()">`},
		{"a.html", `<p style="color: red">`},
		{"a.html", `<style>p {}</style>`},
		{"a.html", `<script>go()</script>`},
		{"a.html", `<a href="javascript:go()">`},
		{"a.html", `<script src="https://cdn.example.com/x.js"></script>`},
		{"a.html", `<link href="//fonts.example.com/x.css">`},
		{"a.html", `<script src="/console/x.js"></script>`},
		{"a.js", `node.innerHTML = key`},
		{"a.js", `node.insertAdjacentHTML('beforeend', key)`},
		{"a.js", `eval(text)`},
		{"a.js", `setTimeout("go()", 1)`},
		{"a.js", `node.setAttribute('style', 'x')`},
		{"a.js", `h('p', { style: 'color: red' })`},
		{"a.js", `fetch('/v1/status')`},
		{"a.css", `@import "x.css";`},
		{"a.css", `p { background: url(x.png) }`},
		{"a.svg", `<svg onload="go()">`},
	} {
		if len(violations(c.name, c.text)) == 0 {
			t.Errorf("%s with %s passes", c.name, c.text)
		}
	}
}

// TestFilesNameEachOther follows the names from index.html on: none is missing,
// and no file is left over.
func TestFilesNameEachOther(t *testing.T) {
	files := readAll(t)
	names := regexp.MustCompile(`(?:href|src)="console/([^"]+)"|from '\./([^']+)'|import '\./([^']+)'`)
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		text, ok := files[name]
		if !ok {
			t.Errorf("there is no %s", name)
		}
		if seen[name] || !ok {
			return
		}
		seen[name] = true
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			follow(m[1] + m[2] + m[3])
		}
	}
	follow("index.html")
	for name := range files {
		if !seen[name] {
			t.Errorf("nothing names %s", name)
		}
	}
}

// TestPolicyForbidsByDefault checks what the policy must not allow.
func TestPolicyForbidsByDefault(t *testing.T) {
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(console.Policy, part) {
			t.Errorf("the policy has no %s", part)
		}
	}
	if strings.Contains(console.Policy, "unsafe") || strings.Contains(console.Policy, "http") || strings.Contains(console.Policy, "*") {
		t.Errorf("the policy is too wide: %s", console.Policy)
	}
}
