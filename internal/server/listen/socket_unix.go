//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package listen

import (
	"os"
	"syscall"
	"time"
)

// makePrivate gives a socket without a name the permissions that its file will have. Systems other
// than Linux ignore it, and the file has the permissions of the umask for a moment.
func makePrivate(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }

// lockWait is how long another server that starts in the same directory is waited for.
const lockWait = 500 * time.Millisecond

// lockDir keeps two servers that start at once from replacing the same socket. Without the lock,
// as on some network file systems, the start goes on.
func lockDir(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for end := time.Now().Add(lockWait); time.Now().Before(end); time.Sleep(lockWait / 50) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK {
			break
		}
	}
	return func() { f.Close() }
}
