//go:build unix

package fileperm

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// group returns the group of a file.
func group(info fs.FileInfo) (gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true // no group of ours
	}
	return int(stat.Gid), true
}

// member reports whether this process is in a group.
func member(gid int) bool {
	if gid == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, gid)
}
