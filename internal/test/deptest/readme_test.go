package deptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// programs returns the Go programs in a Markdown text: its ```go blocks. One without a
// package clause is a part of a function; its comment names the package that it needs.
func programs(markdown string) []string {
	var found []string
	for {
		_, after, ok := strings.Cut(markdown, "\n```go\n")
		if !ok {
			return found
		}
		block, rest, _ := strings.Cut(after, "\n```")
		if !strings.HasPrefix(block, "package ") {
			block = wholeProgram(block)
		}
		found = append(found, block+"\n")
		markdown = rest
	}
}

// wholeProgram returns a program of the statements in block.
func wholeProgram(block string) string {
	var b strings.Builder
	b.WriteString("package main\n\n")
	for _, path := range append([]string{"log", "net/http", "time"}, regexp.MustCompile(`github\.com/lately-go/[a-z/-]+`).FindAllString(block, -1)...) {
		if strings.Contains(block, path[strings.LastIndexByte(path, '/')+1:]+".") {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	return b.String() + "\nfunc main() {\n" + block + "\n}\n"
}

// adapter matches the import of an adapter, which is a module of its own.
var adapter = regexp.MustCompile(`"github\.com/lately-go/lately/adapters/([a-z]+)"`)

// downloaded reports whether the modules that the one in folder needs are there, or can be had.
func downloaded(folder string) bool {
	cmd := exec.Command("go", "mod", "download")
	cmd.Dir = folder
	return cmd.Run() == nil
}

// TestDocumentedProgramsCompile compiles every program in README.md and docs/ against this
// checkout, all programs of a module together.
func TestDocumentedProgramsCompile(t *testing.T) {
	checked := map[string]bool{} // translations have the same programs
	modules := map[string]map[string]string{}
	for _, path := range pages(t) {
		text := must.Get(os.ReadFile(path))(t)
		for i, program := range programs(string(text)) {
			if checked[program] {
				continue
			}
			checked[program] = true
			module := root
			if m := adapter.FindStringSubmatch(program); m != nil {
				module = filepath.Join(root, "adapters", m[1])
			}
			if modules[module] == nil {
				modules[module] = map[string]string{}
			}
			modules[module][fmt.Sprintf("%s-program-%d", filepath.Base(path), i+1)] = program
		}
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if module != root && !downloaded(module) {
			t.Logf("SKIP the programs with %s: its modules cannot be downloaded", module)
		} else if out, err := compile(t, module, modules[module]); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if len(checked) < 2 {
		t.Errorf("only %d programs found", len(checked))
	}
}

// pages lists README.md, the other documents beside it, and all below docs/.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "benchmarks/*.md"} {
		found := must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern))))(t)
		all = append(all, found...)
	}
	return all
}

var (
	fence    = regexp.MustCompile("(?s)```.*?```")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:href|src|srcset)="([^"]+)"|<(https?:[^>]+)>`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	external = regexp.MustCompile(`^(https?|mailto):`)
)

// anchors returns the anchors of a document's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

// links returns the links and pictures of a document.
func links(text string) (all []string) {
	for _, m := range linked.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, m[1]+m[2]+m[3])
	}
	return all
}

// brokenLinks returns the links within a document's repository that lead nowhere.
func brokenLinks(path, text string) (broken []string) {
	for _, link := range links(text) {
		if external.MatchString(link) {
			continue
		}
		file, anchor, _ := strings.Cut(link, "#")
		target := path
		if file != "" {
			target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
		}
		to, err := os.ReadFile(target)
		if info, statErr := os.Stat(target); statErr != nil || anchor != "" && (err != nil || info.IsDir() || !anchors(string(to))[anchor]) {
			broken = append(broken, link)
		}
	}
	return broken
}

// documents yields the name and text of each Markdown file of the repository.
func documents(t *testing.T) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch name := d.Name(); {
			case err != nil:
				return err
			case d.IsDir() && (name == ".git" || name == "bin" || name == "node_modules" || name == "testdata"):
				return fs.SkipDir
			case filepath.Ext(name) != ".md":
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil && !yield(path, string(text)) {
				return fs.SkipAll
			}
			return err
		}))
	}
}

// TestLinks follows the links within the repository, to headings too.
func TestLinks(t *testing.T) {
	n := 0
	for path, text := range documents(t) {
		n += len(links(text))
		for _, link := range brokenLinks(path, text) {
			t.Errorf("%s: the link %s leads nowhere", path, link)
		}
	}
	if n < 300 {
		t.Errorf("only %d links were found", n)
	}
	readme := filepath.Join(root, "README.md")
	const some = `[a](nowhere.md) [b](README.md#nothing) [c](README.md#compared) [d](#compared) <img src="nowhere.png"> <a href="LICENSE">`
	if got := brokenLinks(readme, some); len(got) != 3 {
		t.Errorf("broken links found: %q, want three", got)
	}
}

// TestExternalLinks follows the links to other sites at night, when LATELY_LINKS is set.
func TestExternalLinks(t *testing.T) {
	where := map[string]string{}
	for path, text := range documents(t) {
		for _, link := range links(text) {
			if u, err := url.Parse(link); err == nil && strings.HasPrefix(u.Scheme, "http") && u.Hostname() != "localhost" {
				where[link] = path
			}
		}
	}
	if len(where) < 15 {
		t.Errorf("only %d links were found: %q", len(where), where)
	}
	if os.Getenv("LATELY_LINKS") == "" {
		t.Skip("LATELY_LINKS is not set")
	}
	for _, link := range slices.Sorted(maps.Keys(where)) {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			var err error
			for try := range 3 {
				time.Sleep(time.Duration(try) * 10 * time.Second)
				if err = reached(t, link); err == nil {
					return
				}
			}
			t.Errorf("%s: %v", where[link], err)
		})
	}
}

// reached returns why link leads nowhere, or nil. A site that allows no more requests is there.
func reached(t *testing.T, link string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "lately-links")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode >= 400 && answer.StatusCode != http.StatusTooManyRequests {
		return errors.New(answer.Status)
	}
	return nil
}

// The files that a document names exist.
func TestNamedFilesExist(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(root, "docs", "dev", "architecture.md")))(t)
	names := regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 30 {
		t.Errorf("only %d files are named", len(names))
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name[1]))); err != nil {
			t.Errorf("docs/dev/architecture.md names a file that does not exist: %v", err)
		}
	}
}

func TestBrokenProgramIsFound(t *testing.T) {
	found := programs("text\n```go\npackage main\n\nfunc main() { lately.Nothing() }\n```\n")
	if len(found) != 1 {
		t.Fatalf("%d programs found, want 1", len(found))
	}
	out, err := compile(t, root, map[string]string{"good": "package main\n\nfunc main() {}\n", "bad": found[0]})
	if err == nil || !strings.Contains(string(out), "/bad:3:15: undefined: lately") {
		t.Errorf("a program that does not compile: error %v\n%s", err, out)
	}
}

// compile compiles programs by name in a module, each as a package that is not main, so that it is not linked. With the tag
// nomsgpack, as in the Makefile, gin is compiled without its largest dependency.
func compile(t *testing.T, module string, programs map[string]string) ([]byte, error) {
	t.Helper()
	module = must.Get(filepath.Abs(module))(t)
	dir, files := t.TempDir(), map[string]string{}
	for name, program := range programs {
		file := filepath.Join(dir, name)
		files[filepath.Join(module, "documented", name, "program.go")] = file
		must.Do(t, os.WriteFile(file, []byte(strings.Replace(program, "package main", "package program", 1)), 0o600))
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": files}))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
	cmd := exec.Command("go", "build", "-tags", "nomsgpack", "-overlay", filepath.Join(dir, "overlay"), "./documented/...")
	cmd.Dir = module
	return cmd.CombinedOutput()
}
