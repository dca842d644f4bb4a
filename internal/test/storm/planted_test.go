//go:build linux

package storm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestPlanted builds the program with each of the planted bugs and wants storms to find it.
//
//	make storm-planted
//
// A bug is a patch of one file in testdata/planted, after a line that says which finding is its own. PLANTED names one of them.
func TestPlanted(t *testing.T) {
	if os.Getenv("LATELY_PLANTED") == "" {
		t.Skip("SKIP: planted bugs take minutes; run make storm-planted")
	}
	bugs, err := filepath.Glob(filepath.Join("testdata", "planted", "*"+os.Getenv("PLANTED")+"*.patch"))
	if err != nil || len(bugs) == 0 {
		t.Fatalf("no planted bugs: %v", err)
	}
	for _, bug := range bugs {
		name := strings.TrimSuffix(filepath.Base(bug), ".patch")
		t.Run(name, func(t *testing.T) {
			program, finding := plant(t, bug)
			seeds, text, took := find(t, program, finding, number(t, "STORM_SEEDS", 300))
			if text == "" {
				t.Fatalf("not found in %d seeds, %v: want %q", seeds, took, finding)
			}
			t.Logf("| %s | %d | %v | %s |", name, seeds, took.Round(time.Second), text)
		})
	}
}

// plant builds the program with a bug, and returns its path and which finding must be made.
func plant(t *testing.T, patch string) (program, finding string) {
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	finding, ok := strings.CutPrefix(first, "Found as: ")
	_, after, _ := strings.Cut(string(text), "\n+++ b/")
	file, _, _ := strings.Cut(after, "\n")
	if !ok || file == "" {
		t.Fatalf("%s: must begin with the line Found as, and have a file", patch)
	}
	root, dir := filepath.Join("..", "..", ".."), t.TempDir()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(broken), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, source, 0o600); err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(patch)
	if err != nil {
		t.Fatal(err)
	}
	do(t, dir, "git", "apply", "--recount", absolute)
	original, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
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

// find runs seeds, several at a time, until one makes a finding. It returns how many it took, and what was found.
func find(t *testing.T, program, finding string, most uint64) (seeds uint64, text string, took time.Duration) {
	const atOnce = 4
	var next, found atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	begun := time.Now()
	for range atOnce {
		all.Go(func() {
			for seed := next.Add(1); seed <= most && found.Load() == 0; seed = next.Add(1) {
				findings := Run(t, Draw(seed), program)
				i := slices.IndexFunc(findings, func(f Finding) bool { return f.Invariant == finding })
				if i < 0 {
					continue
				}
				mu.Lock()
				if found.Load() == 0 {
					found.Store(seed)
					text, took = findings[i].Text, time.Since(begun)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	first, _, _ := strings.Cut(text, "\n")
	if text != "" {
		text = fmt.Sprintf("seed %d: %s: %s", found.Load(), finding, first)
	}
	if text == "" {
		took = time.Since(begun)
	}
	return min(next.Load(), most), text, took
}
