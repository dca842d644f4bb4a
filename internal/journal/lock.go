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

// lock takes the directory for this process. The operating system gives it back
// when the process ends, however it does; the file stays, as removing it would
// let two processes lock two files of that name.
func (l *osLayer) lock() (*os.File, error) {
	f, err := l.openRegular(lockName, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = l.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) { // another was faster
			f, err = l.openRegular(lockName, os.O_RDWR)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("%w by process %s; stop that one, or give each its own directory", ErrLocked, holder(f))
		}
		return nil, errors.Join(err, f.Close())
	}
	// Whether the number can be written or not, on a full disk, the lock holds.
	_ = f.Truncate(0)
	_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	return f, nil
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
