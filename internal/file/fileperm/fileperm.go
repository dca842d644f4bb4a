// Package fileperm reads files that an operator names: regular files only, up to a size.
// It also reports which permissions strangers have on a file. Strangers are users other
// than the file's owner and the user of this process, who are in no group of this process.
// Kubernetes gives volumes to a group of the process (fsGroup), so permissions of the
// file's group do not by themselves mean that strangers have them.
package fileperm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Write is the permission of others to write, as [Strangers] returns it.
const Write fs.FileMode = 0o002

// Open opens a regular file for reading, and describes it. Anything else is an error: a
// pipe would make the caller wait, and a device may never end. The error names the path.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path) // before: opening a device may do something
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, irregular(path, info)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = irregular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func irregular(path string, info os.FileInfo) error {
	kind := "a device or socket"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a directory"
	case mode&os.ModeNamedPipe != 0:
		kind = "a pipe"
	}
	return fmt.Errorf("%s: %s: must be a regular file", path, kind)
}

// ReadFile returns the contents of a regular file of at most max bytes.
func ReadFile(path string, max int64) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("%s: too long: must be at most %d bytes", path, max)
	}
	return data, nil
}
