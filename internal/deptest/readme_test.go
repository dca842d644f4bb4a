package deptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// TestDocumentedProgramsCompile vets every program in README.md and docs/ against this checkout.
func TestDocumentedProgramsCompile(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := map[string]bool{} // translations have the same programs
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, program := range programs(string(text)) {
			if checked[program] {
				continue
			}
			checked[program] = true
			folder := root
			if m := adapter.FindStringSubmatch(program); m != nil {
				if folder = filepath.Join(root, "adapters", m[1]); !downloaded(folder) {
					t.Logf("SKIP %s, program %d: the modules of adapters/%s cannot be downloaded", path, i+1, m[1])
					continue
				}
			}
			if out, err := vet(t, folder, program); err != nil {
				t.Errorf("%s, program %d: %v\n%s", path, i+1, err, out)
			}
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
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

var (
	fence    = regexp.MustCompile("(?s)```.*?```")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
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

// brokenLinks returns the links within a document's repository that lead nowhere.
func brokenLinks(path, text string) (broken []string) {
	for _, m := range linked.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		if external.MatchString(m[1]) {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		target := path
		if file != "" {
			target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
		}
		to, err := os.ReadFile(target)
		if info, statErr := os.Stat(target); statErr != nil || anchor != "" && (err != nil || info.IsDir() || !anchors(string(to))[anchor]) {
			broken = append(broken, m[1])
		}
	}
	return broken
}

func TestLinks(t *testing.T) {
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range brokenLinks(path, string(text)) {
			t.Errorf("%s: the link %s leads nowhere", path, link)
		}
	}
	readme := filepath.Join(root, "README.md")
	if got := brokenLinks(readme, "[a](nowhere.md) [b](README.md#nothing) [c](README.md#compared) [d](#compared)"); len(got) != 2 {
		t.Errorf("broken links found: %q, want two", got)
	}
}

// The files that a document names exist.
func TestNamedFilesExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "dev", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	if out, err := vet(t, filepath.Join("..", ".."), found[0]); err == nil {
		t.Errorf("a program that does not compile was taken: %s", out)
	}
}

func vet(t *testing.T, root, program string) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "vet", file)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go vet: %w", err)
	}
	return out, err
}
