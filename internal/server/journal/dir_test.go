package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

func open(t *testing.T, path string) *journal.Journal {
	t.Helper()
	d, _ := restored(t, path, ignored)
	return d
}

// restored opens a directory until the end of the test.
func restored(t *testing.T, path string, restore func(journal.Record) error) (*journal.Journal, journal.Found) {
	t.Helper()
	d, found, err := journal.Open(path, restore)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, found
}

// ignored reads what a directory has for nothing.
func ignored(journal.Record) error { return nil }

// fill writes one record for each text.
func fill(texts ...string) func(func(byte, []byte) error) error {
	return func(add func(byte, []byte) error) error {
		for i, text := range texts {
			if err := add(byte(i), []byte(text)); err != nil {
				return err
			}
		}
		return nil
	}
}

// texts opens a directory, which it closes again, and returns all that it has.
func texts(t *testing.T, path string) (all []string) {
	t.Helper()
	d, _, err := journal.Open(path, textsTo(&all))
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// textsTo appends all that a directory has to all.
func textsTo(all *[]string) func(journal.Record) error {
	return func(r journal.Record) error { *all = append(*all, string(r.Data)); return nil }
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	must.Do(t, errors.Join(d.AppendWait([]byte("a")), d.WriteSnapshot(fill("a", "b"))))
	seen := 0
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
		seen++
		return err
	})
	if err != nil || seen != 3 { // itself, lock, state
		t.Errorf("%d names, %v", seen, err)
	}
}

// TestLock opens a directory twice. The error of the second names the process that has it; afterwards it can be opened.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, _, err := journal.Open(path, ignored)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = journal.Open(path, ignored)
	if want := fmt.Sprintf("process %d;", os.Getpid()); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
		t.Errorf("the second: %v, want ErrLocked with %q and the path", err, want)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	open(t, path)
}

// TestRefusals has unusable directories. Each error gives the reason.
func TestRefusals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes and links here")
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must.Do(t, os.WriteFile(elsewhere, []byte("secret"), 0o600))
	link := func(name string) func(string) error {
		return func(path string) error { return os.Symlink(elsewhere, filepath.Join(path, name)) }
	}
	for _, c := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"others can write", func(path string) error { return os.Chmod(path, 0o772) }, "chmod o-w "},
		{"a link for the lock", link("lock"), "no regular file"},
		{"a link for the state", link("state"), "state is no regular file"},
		{"a folder for the state", func(path string) error {
			return os.Mkdir(filepath.Join(path, "state"), 0o700)
		}, "state is no regular file"},
		{"a file", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		}, "not a directory"},
	} {
		path := filepath.Join(t.TempDir(), "state")
		must.Do(t, errors.Join(os.Mkdir(path, 0o700), c.make(path)))
		d, _, err := journal.Open(path, ignored)
		if err == nil {
			_ = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
	if b, err := os.ReadFile(elsewhere); string(b) != "secret" {
		t.Errorf("the file behind the links is now %q, %v", b, err)
	}
}

// TestLinksAreNotWrittenThrough has links under the names that are written next.
func TestLinksAreNotWrittenThrough(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege here")
	}
	path := filepath.Join(t.TempDir(), "state")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must.Do(t, os.WriteFile(elsewhere, []byte("secret"), 0o600))
	d := open(t, path)
	for _, name := range []string{"state.tmp", "state"} {
		must.Do(t, os.Symlink(elsewhere, filepath.Join(path, name)))
	}
	if err := d.WriteSnapshot(fill("a")); err != nil { // the links are removed
		t.Error(err)
	}
	if err := d.AppendWait([]byte("b")); err != nil {
		t.Error(err)
	}
	must.Do(t, d.Close())
	if got := texts(t, path); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("read %q", got)
	}
	if b, err := os.ReadFile(elsewhere); string(b) != "secret" {
		t.Errorf("the file behind the links is now %q, %v", b, err)
	}
}

// TestReadOnlyDirectory is for users other than root.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root and Windows write everywhere")
	}
	path := filepath.Join(t.TempDir(), "state")
	must.Do(t, os.Mkdir(path, 0o500))
	if _, _, err := journal.Open(path, ignored); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want that it is not permitted", err)
	}
}

// TestNewer has a file of a later version: nothing is changed, and nothing is
// written.
func TestNewer(t *testing.T) {
	path := t.TempDir()
	open(t, path).Close()
	newer := journal.NewerFile()
	state := filepath.Join(path, "state")
	must.Do(t, errors.Join(os.WriteFile(state, newer, 0o600), os.WriteFile(state+".tmp", nil, 0o600)))
	before := listing(t, path)
	if _, _, err := journal.Open(path, ignored); !errors.Is(err, journal.ErrNewer) || !strings.Contains(err.Error(), "state") {
		t.Errorf("%v, want ErrNewer", err)
	}
	if after := listing(t, path); !slices.Equal(before, after) {
		t.Errorf("the directory was %v and is %v", before, after)
	}
	// A damaged version is not taken for a newer one.
	newer[8] ^= 4
	must.Do(t, os.WriteFile(state, newer, 0o600))
	_, found := restored(t, path, ignored)
	if len(found.Problems) == 0 || found.Damaged != int64(len(newer)) {
		t.Errorf("%+v", found)
	}
}

func listing(t *testing.T, path string) (all []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(path))(t)
	for _, e := range entries {
		info := must.Get(e.Info())(t)
		all = append(all, fmt.Sprint(e.Name(), " ", info.Size()))
	}
	return all
}
