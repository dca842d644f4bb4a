package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// ReadFile returns the contents of another file of the directory that WriteFile has written, and nil if it
// is missing. A file of more than max bytes is an error.
func (j *Journal) ReadFile(name string, max int) ([]byte, error) {
	f, err := j.fs.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, j.wrapFile(name, err)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, int64(max)+1))
	if err == nil && len(data) > max {
		err = fmt.Errorf("too long: must be at most %d bytes", max)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, j.wrapFile(name, err)
	}
	return data, nil
}

// WriteFile replaces a file of the directory, which only its owner can read. When it returns nil, data is on disk;
// after an error or a crash the file is as before, or has data. It must not be called twice at the same time.
func (j *Journal) WriteFile(name string, data []byte) error {
	if err := j.writeFile(name, data); err != nil {
		return j.wrapFile(name, err)
	}
	return nil
}

func (j *Journal) writeFile(name string, data []byte) error {
	temp := name + ".tmp"
	if err := j.fs.remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := j.fs.create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = j.fs.rename(temp, name)
	}
	if err == nil {
		err = j.fs.syncDir()
	}
	return err
}

func (j *Journal) wrapFile(name string, err error) error {
	return fmt.Errorf("journal: %s: %w", filepath.Join(j.path, name), err)
}
