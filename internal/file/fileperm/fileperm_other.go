//go:build !unix

package fileperm

import "io/fs"

const nonblock = 0

// Strangers returns 0: files have no groups here.
func Strangers(fs.FileInfo) fs.FileMode { return 0 }
