//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f until it is closed, or returns ErrLocked at once.
func lockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var flock error
	err = raw.Control(func(fd uintptr) {
		flock = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if errors.Is(flock, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return errors.Join(err, flock)
}

// lockDir is lockFile for a directory. Some network file systems have no such locks.
func lockDir(dir *os.File) error {
	err := lockFile(dir)
	if errors.Is(err, ErrLocked) {
		return err
	}
	return nil
}
