package journal

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	lockfileFailImmediately = 1
	lockfileExclusiveLock   = 2

	errorLockViolation = syscall.Errno(33)

	// Locked bytes cannot be read: these are beyond the number of the process.
	lockedAt = 1 << 30
)

// lockFile locks f until it is closed, or returns ErrLocked at once.
func lockFile(f *os.File) error {
	proc := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")
	at := syscall.Overlapped{Offset: lockedAt}
	ok, _, err := proc.Call(f.Fd(), lockfileExclusiveLock|lockfileFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errorLockViolation):
		return ErrLocked
	}
	return err
}

// lockDir does nothing: a file that is open cannot be removed here.
func lockDir(*os.File) error { return nil }
