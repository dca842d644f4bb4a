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

// Generate creates a file at path that only its owner can read, with a random token of
// 256 bits for each role, and returns the tokens as Load does. The tokens themselves
// are in the file only.
//
// The file appears atomically. If there is a file at path, it is not changed, and the
// error wraps [fs.ErrExist]. The directory must exist.
func Generate(path string) (*Tokens, error) {
	var b strings.Builder
	b.WriteString("# Each line: role, token, name. Each role may do what those before it may.\n" +
		"# Keep this file secret. Instead of a token, a line can have sha256: and its hash:\n" +
		"#   printf %s \"$TOKEN\" | sha256sum\n" +
		"# Or it can have cert: and a name of a client certificate, with the setting tls-client-ca.\n")
	for role := Read; role <= Admin; role++ {
		var secret [sha256.Size]byte
		_, _ = rand.Read(secret[:]) // never fails: the program ends instead
		fmt.Fprintf(&b, "%-5s %s %s\n", role, base64.RawURLEncoding.EncodeToString(secret[:]), role)
	}
	if err := writeNew(path, b.String()); err != nil {
		return nil, notCreated(path, err)
	}
	return Load(path)
}

// writeNew creates a file atomically: under a temporary name, which is then linked to
// path.
func writeNew(path, text string) error {
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+name+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// Link, unlike Rename, does not replace a file that another process has created.
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(f.Name(), path) // the file system has no links
	}
	if err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync() // some file systems cannot
		_ = d.Close()
	}
	return nil
}

// notCreated returns why there is no file at path, and what to do about it.
func notCreated(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("tokens: %s: %w", path, fs.ErrExist)
	}
	// The name of the temporary file would not help the reader.
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
