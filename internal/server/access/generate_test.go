package access_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

func TestGenerate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	tokens := must.Get(access.Generate(path))(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	text := must.Get(os.ReadFile(path))(t)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		word := strings.Fields(line)
		role, name, ok := tokens.Role(word[1])
		if !ok || role.String() != word[0] || name != word[2] || len(word[1]) != 43 {
			t.Errorf("a line of role %s is %v %s %v, with a token of %d characters", word[0], role, name, ok, len(word[1]))
		}
		seen[word[1]] = true
	}
	if len(seen) != 3 || tokens.Len() != 3 {
		t.Errorf("%d tokens in the file, %d in memory", len(seen), tokens.Len())
	}
	if _, err := access.Generate(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v, want that it exists", err)
	}
	if again, err := os.ReadFile(path); string(again) != string(text) {
		t.Errorf("the file was changed: %v", err)
	}
	other, err := access.Generate(filepath.Join(t.TempDir(), "tokens"))
	for token := range seen {
		if _, _, ok := other.Role(token); ok || err != nil {
			t.Errorf("two files share a token: %v", err)
		}
	}
}

// Servers that start at the same time get one file: one creates it, and none reads
// it incomplete.
func TestGenerateIsAtomic(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		path := filepath.Join(dir, "tokens")
		var made atomic.Pointer[access.Tokens]
		var group sync.WaitGroup
		read := make([]*access.Tokens, 8)
		for i := range read {
			group.Go(func() {
				tokens, err := access.Generate(path)
				switch {
				case err == nil && !made.CompareAndSwap(nil, tokens):
					t.Error("two have made the file")
				case err != nil && !errors.Is(err, fs.ErrExist):
					t.Error(err)
				}
				if read[i], err = access.Load(path); err != nil {
					t.Errorf("the file is there, and is read as %v", err)
				}
			})
		}
		group.Wait()
		for _, tokens := range read {
			if !tokens.Equal(made.Load()) {
				t.Errorf("%v were read, %v made", tokens.All(), made.Load().All())
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("there are %v; want the file alone (%v)", left, err)
		}
	}
}

// Where no file can be made the error has the reason, and what to do.
func TestGenerateRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "tokens")
	_, err := access.Generate(path)
	for _, want := range []string{path, "there is no directory " + filepath.Dir(path), "create the directory"} {
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	path = filepath.Join(dir, strings.Repeat("n", 300))
	_, err = access.Generate(path)
	for _, want := range []string{path, "it cannot be created", "let the user of this process write to " + dir, "role token [name]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("SKIP: a directory that is not to be written: root may write to all, and here are no modes on Windows")
	}
	must.Do(t, os.Chmod(dir, 0o500))
	path = filepath.Join(dir, "tokens")
	_, err = access.Generate(path)
	for _, want := range []string{path, "permission denied", "let the user of this process write to " + dir, "role token [name]"} {
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}
