//go:build unix

package rules

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe is refused at once, and a device that never ends. `lately validate` and `replay
// --rules` read by Load.
func TestLoadOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "rules.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "must be a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
