//go:build unix

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// A rules file, token file or certificate that is replaced by a pipe or a device is refused by a reload and by the watcher;
// the server goes on, and still ends on SIGTERM.
func TestEndlessFiles(t *testing.T) {
	for _, replace := range []struct {
		name string
		by   func(path string) error
	}{
		{"a pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"a device", func(path string) error { return os.Symlink("/dev/zero", path) }},
	} {
		c := deployed(t)
		c.TokenFile = filepath.Join(t.TempDir(), "tokens")
		c.RESP, c.HTTP, c.RulesPoll = "127.0.0.1:0", Off, 10*time.Millisecond
		s := must.Get(New(c, "test", nil))(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		for _, path := range []string{c.RulesFiles[0], c.TokenFile} {
			if err := errors.Join(os.Remove(path), replace.by(path)); err != nil {
				t.Skip(err)
			}
			if err := s.Reload(); err == nil || !strings.Contains(err.Error(), path+": "+replace.name) {
				t.Errorf("%s: error of the reload: %v", replace.name, err)
			}
		}
		eventually(t, "the file is seen to have changed", func() bool { return s.engine.Status().Rules.Error != "" })
		if len(s.engine.RuleInfos()) != 1 {
			t.Error("the rules of before are not in force")
		}
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute): // else the whole test run hangs
			t.Fatalf("%s: the server has not ended", replace.name)
		}
		if _, err := New(c, "test", nil); err == nil || !strings.Contains(err.Error(), replace.name) {
			t.Errorf("%s: error of the start: %v", replace.name, err)
		}
	}
}
