package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/lately-go/lately/internal/file/fileperm"
)

// A fileSystem is one flat directory. Tests have one that fails and crashes.
type fileSystem interface {
	create(name string) (file, error) // it must not be there yet
	open(name string) (file, error)
	rename(from, to string) error // replaces to
	remove(name string) error
	syncDir() error // makes creations, renames and removals durable
}

// A file is an open file of a fileSystem.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

// osFS is an open directory of the operating system, which may be renamed meanwhile.
type osFS struct{ root *os.Root }

// openDir opens the directory at path, and makes it if it is not there.
func openDir(path string) (*osFS, error) {
	switch err := os.Mkdir(path, 0o700); {
	case err == nil:
		if err := syncOpened(os.Open(filepath.Dir(path))); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := checkMode(root, path); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &osFS{root}, nil
}

// checkMode returns an error for a directory in which other users could replace files. A
// group of this process may write to it, as volumes of Kubernetes belong to one (fsGroup).
// Listing does not matter: files are 0600.
func checkMode(root *os.Root, path string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if fileperm.Strangers(info)&fileperm.Write == 0 {
		return nil
	}
	mode, fix := info.Mode().Perm(), "chmod o-w "+path
	if mode&0o002 == 0 {
		fix = "chmod g-w " + path + ", or add the process to the group of the directory"
	}
	return fmt.Errorf("others can write to it (mode %04o); run: %s", mode, fix)
}

func (l *osFS) create(name string) (file, error) {
	return l.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL follows no symbolic link
}

func (l *osFS) open(name string) (file, error) { return l.openRegular(name, os.O_RDWR) }

// openRegular opens a regular file: a symbolic link may belong to another user, and a pipe
// would block.
func (l *osFS) openRegular(name string, flag int) (*os.File, error) {
	before, err := l.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file (%v); remove it", name, before.Mode().Type())
	}
	f, err := l.root.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s was replaced while it was opened", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (l *osFS) rename(from, to string) error { return l.root.Rename(from, to) }
func (l *osFS) remove(name string) error     { return l.root.Remove(name) }
func (l *osFS) close() error                 { return l.root.Close() }

func (l *osFS) syncDir() error { return syncOpened(l.root.Open(".")) }

// syncOpened syncs and closes a directory. Windows and some network file systems cannot
// sync one.
func syncOpened(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	if err = dir.Sync(); runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
