//go:build !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd && !windows

package journal

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock that ends with the process, two of them could
// write to one directory, or none after a crash.
func lockFile(*os.File) error {
	return errors.New("this system has no file locks that end with the process; run without a data directory")
}

// lockDir does nothing: lockFile refuses.
func lockDir(*os.File) error { return nil }
