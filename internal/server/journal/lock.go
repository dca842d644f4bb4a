package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrLocked is the error of [Open] for a directory that another process, or another [Journal]
// of this one, has open. It names the process.
var ErrLocked = errors.New("it is in use")

const lockName = "lock"

// lockWait is how long a lock is waited for. A process that was killed while it started a program has a child, with its
// files open, until that runs.
const lockWait = 500 * time.Millisecond

// lock locks the directory until release, or the end of the process. Nobody can remove the
// lock of the directory itself; the file names the process, and is the only lock where
// directories have none.
func (l *osFS) lock() (release func() error, err error) {
	file, err := l.openLock()
	if err != nil {
		return nil, err
	}
	dir, err := l.root.Open(".")
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	release = func() error { return errors.Join(file.Close(), dir.Close()) }
	for _, lock := range []func() error{func() error { return lockDir(dir) }, func() error { return lockFile(file) }} {
		err := lock()
		for end := time.Now().Add(lockWait); errors.Is(err, ErrLocked) && time.Now().Before(end); err = lock() {
			time.Sleep(lockWait / 50)
		}
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("%w by process %s; stop that one, or give each its own directory", ErrLocked, holder(file))
		}
		if err != nil {
			return nil, errors.Join(err, release())
		}
	}
	// The lock holds even if the number cannot be written to a full disk.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	return release, nil
}

// openLock opens the lock file, or makes it.
func (l *osFS) openLock() (*os.File, error) {
	for {
		f, err := l.openRegular(lockName, os.O_RDWR)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = l.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) { // else another was faster
			return f, err
		}
	}
}

// holder returns the number of the process that has the lock.
func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return "(unknown)"
	}
	return strconv.Itoa(pid)
}
