//go:build unix

package fileperm_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/test/must"
)

// Regular files up to a size are read, through links as well; anything else is refused at once, with its kind.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"whole": "0123456789", "long": "0123456789a", "empty": ""} {
		must.Do(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	must.Do(t, os.Symlink("whole", at("link")))
	must.Do(t, os.Symlink("/dev/zero", at("zero")))
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ path, want, err string }{
		{at("whole"), "0123456789", ""},
		{at("link"), "0123456789", ""},
		{at("empty"), "", ""},
		{at("long"), "", "long: too long: must be at most 10 bytes"},
		{at("pipe"), "", "pipe: a pipe: must be a regular file"},
		{at("zero"), "", "zero: a device or socket: must be a regular file"},
		{"/dev/null", "", "/dev/null: a device or socket: must be a regular file"},
		{dir, "", "a directory: must be a regular file"},
		{at("none"), "", "no such file"},
	} {
		got, err := fileperm.ReadFile(c.path, 10)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.path, got, err, c.want, c.err)
		}
	}
}
