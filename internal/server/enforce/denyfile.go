package enforce

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A DenyFile is a file of banned networks for a proxy.
type DenyFile struct {
	// Path is the file. It is replaced as a whole and keeps its permissions; a new one
	// has 0644. Its directory must be writable.
	Path string

	// Format is "nginx", for the directive geo, or "haproxy", for src -f; "" means
	// nginx.
	Format string

	// Command is run by sh after the file has changed, one at a time, such as
	// "nginx -s reload"; "" means none.
	Command string

	// Every is the least time from one run of Command to the next, also of one that failed; 0 means 10 s. Changes
	// meanwhile are written together before the next one. Bans that have run out wait for up to
	// endedWait times as long if nothing else changes.
	Every time.Duration
}

const (
	denyPause    = 500 * time.Millisecond // from one file to the next, without a command
	denyEvery    = 10 * time.Second       // the default of DenyFile.Every
	minDenyEvery = denyPause
	endedWait    = 6
)

// pace returns how the file takes changes.
func (f *DenyFile) pace() pace {
	if f.Command == "" {
		return pace{whole: true, pause: denyPause}
	}
	every := cmp.Or(f.Every, denyEvery)
	return pace{whole: true, pause: every, ended: endedWait * every}
}

// denyLines has the line of a network in each format.
var denyLines = map[string]string{"nginx": "%s 1;\n", "haproxy": "%s\n"}

const (
	// denyHeader is a comment in all formats.
	denyHeader = "# Written by lately serve. What others write here is replaced.\n"

	// commandTimeout is how long a command may take.
	commandTimeout = 30 * time.Second
)

// validate returns an error that names the wrong setting.
func (f *DenyFile) validate() error {
	switch {
	case f.Path == "" && (f.Format != "" || f.Command != ""):
		return errors.New("deny-format and deny-command: set without deny-file: must be set with it")
	case f.Every != 0 && f.Command == "":
		return errors.New("deny-every: set without deny-command: must be set with it")
	case f.Every != 0 && f.Every < minDenyEvery:
		return fmt.Errorf("deny-every: %v: must be at least %v", f.Every, minDenyEvery)
	case f.Format != "" && denyLines[f.Format] == "":
		return fmt.Errorf("deny-format: %q: must be nginx or haproxy", f.Format)
	}
	return nil
}

// denyFile is the target of a DenyFile.
type denyFile struct {
	DenyFile
	stale   bool        // the command has not succeeded since the file changed
	written fs.FileInfo // of the file as it was written
}

func newDenyFile(f DenyFile) *denyFile {
	if f.Format == "" {
		f.Format = "nginx"
	}
	return &denyFile{DenyFile: f, stale: true}
}

// apply writes the file if it is another, and runs the command until it succeeds.
func (d *denyFile) apply(ctx context.Context, _ bool, changes []change) error {
	slices.SortFunc(changes, func(x, y change) int { return x.network.Compare(y.network) })
	var text bytes.Buffer
	text.WriteString(denyHeader)
	for _, c := range changes {
		fmt.Fprintf(&text, denyLines[d.Format], c.network)
	}
	path, err := filepath.EvalSymlinks(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		path = d.Path
	} else if err != nil {
		return err
	}
	if was, err := os.ReadFile(path); err != nil || !bytes.Equal(was, text.Bytes()) {
		d.stale = true
		if err := replaceFile(path, text.Bytes()); err != nil {
			return err
		}
	}
	if d.written, err = os.Stat(path); err != nil {
		return err
	}
	if !d.stale || d.Command == "" {
		return nil
	}
	if _, err := execute(ctx, commandTimeout, nil, "sh", "-c", d.Command); err != nil {
		return fmt.Errorf("deny-command: %w", err)
	}
	d.stale = false
	return nil
}

// verify returns an error if the file is not as it was written.
func (d *denyFile) verify(context.Context) error {
	now, err := os.Stat(d.Path)
	if err != nil {
		return err
	}
	if !os.SameFile(now, d.written) || now.Size() != d.written.Size() || !now.ModTime().Equal(d.written.ModTime()) {
		return fmt.Errorf("%s: it was written at %s", d.Path, now.ModTime().UTC().Format(time.RFC3339))
	}
	return nil
}

// replaceFile makes text the contents of path, which it has before or after a crash: as a
// whole, and with the permissions of the file.
func replaceFile(path string, text []byte) error {
	mode := fs.FileMode(0o644)
	if was, err := os.Stat(path); err == nil {
		mode = was.Mode().Perm()
	}
	next := path + ".lately-new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // some file systems cannot
		dir.Close()
	}
	return nil
}
