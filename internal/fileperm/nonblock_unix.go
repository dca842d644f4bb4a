//go:build unix

package fileperm

import "syscall"

// nonblock has the opening of a pipe not wait for a writer.
const nonblock = syscall.O_NONBLOCK
