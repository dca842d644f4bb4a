//go:build linux

package storm

import (
	"encoding/json"
	"errors"
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
)

// TestPlanted builds the program with each of the planted bugs and wants storms to find it.
//
//	make storm-planted
//
// A bug is a patch in testdata/planted, after a line that says which finding is its own. PLANTED
// names one patch.
func TestPlanted(t *testing.T) {
	if os.Getenv("LATELY_PLANTED") == "" {
		t.Skip("SKIP: planted bugs take minutes; run make storm-planted")
	}
	for name, bug := range planted(t, os.Getenv("PLANTED")) {
		t.Run(name, func(t *testing.T) {
			program, finding := build(t, bug)
			seeds, text, took := find(t, program, finding, number(t, "STORM_SEEDS", 300))
			if text == "" {
				t.Fatalf("not found in %d seeds: want %q", seeds, finding)
			}
			t.Logf("| %s | %d | %v | %s |", name, seeds, took.Round(time.Second), text)
		})
	}
}

// TestPlantedApply checks that each planted bug can still be planted: who changes the lines around one
// changes its patch, too.
func TestPlantedApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: needs git")
	}
	for name, bug := range planted(t, "") {
		t.Run(name, func(t *testing.T) { plant(t, bug, t.TempDir()) })
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

// root is the root of the repository.
var root = filepath.Join("..", "..", "..")

// plant writes the files that a patch changes, with the bug, to a directory. It returns their paths in the repository, and
// which finding must be made.
func plant(t *testing.T, patch, dir string) (files []string, finding string) {
	t.Helper()
	text := must.Get(os.ReadFile(patch))(t)
	for line := range strings.Lines(string(text)) {
		if of, ok := strings.CutPrefix(line, "Found as: "); ok {
			finding = strings.TrimSpace(of)
		}
		file, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if !ok {
			continue
		}
		files = append(files, file)
		source, err := os.ReadFile(filepath.Join(root, file))
		broken := filepath.Join(dir, file)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(broken), 0o700), os.WriteFile(broken, source, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if finding == "" || len(files) == 0 {
		t.Fatalf("%s: must have the line Found as, and a file", patch)
	}
	absolute := must.Get(filepath.Abs(patch))(t)
	do(t, dir, "git", "apply", "--recount", "-C1", absolute)
	return files, finding
}

// build builds the program with a bug, and returns its path and which finding must be made.
func build(t *testing.T, patch string) (program, finding string) {
	dir, replaced := t.TempDir(), make(map[string]string)
	files, finding := plant(t, patch, dir)
	for _, file := range files {
		original := must.Get(filepath.Abs(filepath.Join(root, file)))(t)
		replaced[original] = filepath.Join(dir, file)
	}
	overlay := must.Get(json.Marshal(map[string]map[string]string{"Replace": replaced}))(t)
	list := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(list, overlay, 0o600))
	program = filepath.Join(dir, "lately")
	do(t, root, "go", "build", "-overlay", list, "-o", program, "./cmd/lately")
	return program, finding
}

// do runs a command in a directory.
func do(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// find runs seeds until one makes a finding. It returns how many it took, and what was found.
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
