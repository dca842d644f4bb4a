// Package overlay builds the program lately with changed files, for tests that must notice a bug on purpose.
package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// Files has the changed text of files, by absolute path.
type Files map[string]string

// Build builds the program and returns its path.
func (files Files) Build(t *testing.T, root string) string {
	t.Helper()
	dir, replaced := t.TempDir(), make(map[string]string)
	for path, text := range files {
		changed := filepath.Join(must.Get(os.MkdirTemp(dir, ""))(t), filepath.Base(path))
		must.Do(t, os.WriteFile(changed, []byte(text), 0o600))
		replaced[path] = changed
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "lately")
	must.Do(t, os.WriteFile(list, must.Get(json.Marshal(map[string]any{"Replace": replaced}))(t), 0o600))
	build := exec.Command("go", "build", "-overlay", list, "-o", program, "./cmd/lately")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return program
}

// A Checker checks the types in changed files, which takes milliseconds where Build takes seconds. What a changed package
// exports must stay as it is: the packages that import it are not checked.
type Checker struct {
	packages map[string]listed // by folder
	fset     *token.FileSet
	importer types.Importer
}

type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// NewChecker compiles the program, unless it is in the build cache, since types of imported packages are read from there.
func NewChecker(t *testing.T, root string) *Checker {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./cmd/lately")
	list.Dir = root
	c, exports := &Checker{packages: make(map[string]listed), fset: token.NewFileSet()}, make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(must.Get(list.Output())(t))); d.More(); {
		var p listed
		must.Do(t, d.Decode(&p))
		c.packages[p.Dir], exports[p.ImportPath] = p, p.Export
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// Check returns an error unless each package with a changed file compiles.
func (c *Checker) Check(files Files) error {
	for path := range files {
		p, ok := c.packages[filepath.Dir(path)]
		if !ok {
			return fmt.Errorf("%s: the program has no package in this folder", path)
		}
		var syntax []*ast.File
		for _, name := range p.GoFiles {
			var src any
			if text, ok := files[filepath.Join(p.Dir, name)]; ok {
				src = text
			}
			f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), src, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			syntax = append(syntax, f)
		}
		if _, err := (&types.Config{Importer: c.importer}).Check(p.ImportPath, c.fset, syntax, nil); err != nil {
			return err
		}
	}
	return nil
}
