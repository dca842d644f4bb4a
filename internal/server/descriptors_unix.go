//go:build unix

package server

import "syscall"

// openFiles returns how many descriptors this process can have, or 0 if that is unknown. The Go runtime has
// raised the soft limit to the hard one.
func openFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return uint64(l.Cur)
}
