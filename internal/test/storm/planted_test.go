//go:build linux

package storm

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/overlay"
)

// TestPlanted builds the program with each of the planted bugs and requires storms to find it.
//
//	make storm-planted
//
// A bug is a patch in testdata/planted, after a line with the finding that it must cause. PLANTED selects one patch.
func TestPlanted(t *testing.T) {
	if os.Getenv("LATELY_PLANTED") == "" {
		t.Skip("SKIP: planted bugs take minutes; run make storm-planted")
	}
	for name, bug := range planted(t, os.Getenv("PLANTED")) {
		t.Run(name, func(t *testing.T) {
			files, finding := plant(t, bug)
			program := files.Build(t, root(t))
			seeds, text, took := find(t, program, finding, number(t, "STORM_SEEDS", 300))
			if text == "" {
				t.Fatalf("not found in %d seeds: want %q", seeds, finding)
			}
			t.Logf("| %s | %d | %v | %s |", name, seeds, took.Round(time.Second), text)
		})
	}
}

// TestPlantedApply checks that each planted bug can still be planted, and that the server with it compiles: a change of the
// lines around a bug must change its patch, too.
func TestPlantedApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: needs git")
	}
	checker := overlay.NewChecker(t, root(t))
	for name, bug := range planted(t, "") {
		t.Run(name, func(t *testing.T) {
			files, _ := plant(t, bug)
			must.Do(t, checker.Check(files))
		})
	}
}

// planted yields the names and the patches of the bugs whose names have a text.
func planted(t *testing.T, with string) iter.Seq2[string, string] {
	bugs, err := filepath.Glob(filepath.Join("testdata", "planted", "*"+with+"*.patch"))
	if err != nil || len(bugs) == 0 {
		t.Fatalf("no planted bugs: %v", err)
	}
	return func(yield func(string, string) bool) {
		for _, bug := range bugs {
			if !yield(strings.TrimSuffix(filepath.Base(bug), ".patch"), bug) {
				return
			}
		}
	}
}

// root returns the root of the repository.
func root(t *testing.T) string { return must.Get(filepath.Abs(filepath.Join("..", "..", "..")))(t) }

// plant returns the files that a patch changes, with the bug, and the finding that storms must make.
func plant(t *testing.T, patch string) (files overlay.Files, finding string) {
	t.Helper()
	dir, root, files := t.TempDir(), root(t), make(overlay.Files)
	var names []string
	for line := range strings.Lines(string(must.Get(os.ReadFile(patch))(t))) {
		if name, ok := strings.CutPrefix(line, "Found as: "); ok {
			finding = strings.TrimSpace(name)
		}
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			names = append(names, name)
			source, broken := must.Get(os.ReadFile(filepath.Join(root, name)))(t), filepath.Join(dir, name)
			must.Do(t, os.MkdirAll(filepath.Dir(broken), 0o700))
			must.Do(t, os.WriteFile(broken, source, 0o600))
		}
	}
	if finding == "" || len(names) == 0 {
		t.Fatalf("%s: must have the line Found as, and a file", patch)
	}
	apply := exec.Command("git", "apply", "--recount", "-C1", must.Get(filepath.Abs(patch))(t))
	apply.Dir = dir
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", apply, err, out)
	}
	for _, name := range names {
		files[filepath.Join(root, name)] = string(must.Get(os.ReadFile(filepath.Join(dir, name)))(t))
	}
	return files, finding
}

// find runs seeds until one makes a finding. It returns the number of seeds, and the finding.
func find(t *testing.T, program, finding string, most uint64) (seeds uint64, text string, took time.Duration) {
	begun := time.Now()
	var mu sync.Mutex
	each(t, 1, most, func(seed uint64) bool {
		findings := Run(t, Draw(seed), program)
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Invariant == finding })
		mu.Lock()
		defer mu.Unlock()
		if seeds++; i >= 0 && text == "" {
			first, _, _ := strings.Cut(findings[i].Text, "\n")
			text, took = fmt.Sprintf("seed %d: %s: %s", seed, finding, first), time.Since(begun)
		}
		return i < 0
	})
	return seeds, text, took
}
