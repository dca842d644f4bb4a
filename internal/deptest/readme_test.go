package deptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs returns the Go programs in a Markdown text: its ```go blocks that
// begin with a package clause.
func programs(markdown string) []string {
	var found []string
	for {
		_, after, ok := strings.Cut(markdown, "\n```go\n")
		if !ok {
			return found
		}
		block, rest, _ := strings.Cut(after, "\n```")
		if strings.HasPrefix(block, "package ") {
			found = append(found, block+"\n")
		}
		markdown = rest
	}
}

// TestDocumentedProgramsCompile vets every whole program in README.md and docs/
// against this checkout.
func TestDocumentedProgramsCompile(t *testing.T) {
	root := filepath.Join("..", "..")
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range append(docs, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, program := range programs(string(text)) {
			checked++
			if out, err := vet(t, root, program); err != nil {
				t.Errorf("%s, program %d: %v\n%s", path, i+1, err, out)
			}
		}
	}
	if checked < 2 {
		t.Errorf("only %d programs found", checked)
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
