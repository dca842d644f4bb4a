package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Generate makes a file at path that only its owner can read, with a random token
// of 256 bits for each role, and returns the tokens as Load would. The tokens
// themselves are in the file and nowhere else.
//
// The file is there whole or not at all, also for those who look meanwhile. An
// error that wraps [fs.ErrExist] says that there is something at path already,
// which is left as it is; the directory is not made.
func Generate(path string) (*Tokens, error) {
	var b strings.Builder
	b.WriteString("# Who may do what: role, token, name. Each role may do what those before it may.\n" +
		"# Keep this file secret. In place of a token there can be sha256: and its hash:\n" +
		"#   printf %s \"$TOKEN\" | sha256sum\n")
	for role := Read; role <= Admin; role++ {
		var secret [sha256.Size]byte
		_, _ = rand.Read(secret[:]) // never fails: the program ends instead
		fmt.Fprintf(&b, "%-5s %s %s\n", role, base64.RawURLEncoding.EncodeToString(secret[:]), role)
	}
	if err := writeNew(path, b.String()); err != nil {
		return nil, notMade(path, err)
	}
	return Load(path)
}

// writeNew writes a file that is not there yet, whole or not at all: under another
// name, which then becomes its own.
func writeNew(path, text string) error {
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+name+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // whose it is no more, or never was
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A link, unlike a new name, does not replace what somebody else has made.
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(f.Name(), path) // the file system has no links
	}
	if err == nil {
		syncDir(filepath.Dir(path))
	}
	return err
}

// syncDir has the names in a directory last, where that can be asked for.
func syncDir(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// notMade says why there is no file at path, and what to do about it.
func notMade(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("tokens: %s: %w", path, fs.ErrExist)
	}
	// The name of the temporary file helps nobody.
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	dir := filepath.Dir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tokens: there is no file %s, and it cannot be created: there is no directory %s: create the directory, or name another file (%w)", path, dir, err)
	}
	return fmt.Errorf("tokens: there is no file %s, and it cannot be created: %w: let the user of this process write to %s, or create the file, readable by that user only, with lines of the form: role token [name]", path, err, dir)
}
