// Package fileperm reads the files that an operator names, without trusting what they
// are, and says what strangers may do with a file: users other than the one that this
// process runs as and its owner, who are in none of the groups of this process. Kubernetes gives volumes to a group of the process (fsGroup), so that
// permissions of a group alone do not say that strangers have them.
package fileperm

import (
	"io/fs"
)

// Permissions of everyone who is neither the owner nor in the file's group.
const (
	Read  fs.FileMode = 0o004
	Write fs.FileMode = 0o002
)

// Strangers returns the permissions that strangers have on the file that info
// describes, as the last three bits. Those of the file's group count, unless this
// process is in it. On systems without such groups the result is 0.
func Strangers(info fs.FileInfo) fs.FileMode {
	gid, ok := group(info)
	if !ok {
		return 0
	}
	mode := info.Mode().Perm()
	strangers := mode & 0o007
	if !member(gid) {
		strangers |= mode >> 3 & 0o007
	}
	return strangers
}
