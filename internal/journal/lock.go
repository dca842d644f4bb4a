package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ErrLocked is returned by [Open] when another process, or another [Dir] of this
// one, has the directory. The error names the process.
var ErrLocked = errors.New("it is in use")

const lockName = "lock"

// lock takes the directory for this process, and returns how to give it back. The
// operating system does so when the process ends, however it does. The lock of the
// directory itself is the one that nobody can remove; the file says which process has
// it, excludes older versions, and is all there is where directories have no locks.
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
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("%w by process %s; stop that one, or give each its own directory", ErrLocked, holder(file))
		}
		if err != nil {
			return nil, errors.Join(err, release())
		}
	}
	// Whether the number can be written or not, on a full disk, the lock holds.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	return release, nil
}

// openLock opens the lock file, and makes it if it is not there.
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

// holder reads whose lock it is.
func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return "(unknown)"
	}
	return strconv.Itoa(pid)
}
