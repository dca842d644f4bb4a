//go:build unix

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

// TestPipes has pipes under the names of files: opening one would wait for ever.
func TestPipes(t *testing.T) {
	for _, name := range []string{"lock", "state"} {
		path := filepath.Join(t.TempDir(), "state")
		must.Do(t, os.Mkdir(path, 0o700))
		if err := syscall.Mkfifo(filepath.Join(path, name), 0o600); err != nil {
			t.Skip(err)
		}
		if _, _, err := journal.Open(path, ignored); err == nil || !strings.Contains(err.Error(), name+" is no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGroupWritable has directories as Kubernetes hands them out with fsGroup: of
// another owner, writable for a group of the process, with the bit that new files are
// of this group. A group that the process is not in is refused.
func TestGroupWritable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	must.Do(t, errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770|os.ModeSetgid)))
	d := open(t, path)
	if err := d.AppendWait([]byte("a")); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		t.Skip("SKIP a group that the process is not in: only root can give a directory to one")
	}
	must.Do(t, errors.Join(os.Chown(path, 65_531, 54_321), os.Chmod(path, 0o770|os.ModeSetgid)))
	d, _, err := journal.Open(path, ignored)
	if err == nil {
		_ = d.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "others can write to it (mode 0770)") || !strings.Contains(err.Error(), "chmod g-w "+path) {
		t.Errorf("a directory of another group: %v", err)
	}
}

// TestLockFileRemoved removes the lock file of a directory that is in use, or puts
// another in its place: a second process is refused all the same.
func TestLockFileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	open(t, path)
	lock := filepath.Join(path, "lock")
	for what, change := range map[string]func() error{
		"removed":  func() error { return os.Remove(lock) },
		"renamed":  func() error { return os.Rename(lock, lock+".old") },
		"replaced": func() error { return errors.Join(os.Remove(lock), os.WriteFile(lock, []byte("1"), 0o600)) },
	} {
		must.Do(t, change())
		d, _, err := journal.Open(path, ignored)
		if err == nil {
			_ = d.Close()
		}
		if !errors.Is(err, journal.ErrLocked) {
			t.Errorf("%s: %v, want ErrLocked", what, err)
		}
	}
}

// TestSmallDisk fills a disk that is really full: with LATELY_SMALL_DISK, a folder
// on one of a few MiB.
func TestSmallDisk(t *testing.T) {
	disk := os.Getenv("LATELY_SMALL_DISK")
	if disk == "" {
		t.Skip("LATELY_SMALL_DISK names no folder on a small disk")
	}
	path := filepath.Join(disk, "state")
	d := open(t, path)
	must.Do(t, d.WriteSnapshot(fill("good")))
	stuff := filepath.Join(disk, "stuff")
	defer os.Remove(stuff)
	_ = os.WriteFile(stuff, make([]byte, 1<<30), 0o600) // until it is full
	if err := d.WriteSnapshot(func(add func(byte, []byte) error) error {
		return add(1, make([]byte, journal.MaxRecord))
	}); err == nil {
		t.Error("a snapshot was written")
	}
	if err := d.AppendWait(make([]byte, journal.MaxRecord)); err == nil {
		t.Error("a record was written")
	}
	t.Log(d.Stats().Failing)
	if err := d.Close(); err == nil {
		t.Error("the record that is not on disk was not reported")
	}
	if got := texts(t, path); len(got) != 1 || got[0] != "good" {
		t.Errorf("read %q", got)
	}
	must.Do(t, os.Remove(stuff))
	d = open(t, path)
	if err := d.AppendWait([]byte("there is space again")); err != nil {
		t.Error(err)
	}
	if err := d.WriteSnapshot(fill("good", "too")); err != nil {
		t.Error(err)
	}
}
