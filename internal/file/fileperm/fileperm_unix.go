//go:build unix

package fileperm

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// nonblock makes opening a pipe not wait for a writer.
const nonblock = syscall.O_NONBLOCK

// Strangers returns the permissions that strangers have on the file that info
// describes, as the last three bits. The permissions of the file's group count,
// unless this process is in it. On systems without such groups the result is 0.
func Strangers(info fs.FileInfo) fs.FileMode {
	mode := info.Mode().Perm()
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !member(int(stat.Gid)) {
		mode |= mode >> 3
	}
	return mode & 0o007
}

// member reports whether this process is in a group.
func member(gid int) bool {
	groups, _ := os.Getgroups() // without them, only the effective group counts
	return gid == os.Getegid() || slices.Contains(groups, gid)
}
