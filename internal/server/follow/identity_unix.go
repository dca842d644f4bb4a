//go:build unix

package follow

import (
	"io/fs"
	"syscall"
)

// fileID returns the device and the inode of a file.
func fileID(info fs.FileInfo) (dev, ino uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}
