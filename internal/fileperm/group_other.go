//go:build !unix

package fileperm

import "io/fs"

func group(fs.FileInfo) (gid int, ok bool) { return 0, false }

func member(int) bool { return false }
