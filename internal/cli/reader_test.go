//go:build unix

package cli

import (
	"bufio"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// TestConcurrentFollowForHead ends the reader of a dry run, as head does, after all output: the command ends, too.
func TestConcurrentFollowForHead(t *testing.T) {
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "access.log")
	appendTo(t, rules, followRules)
	appendTo(t, log, requests("192.0.2.1", time.Now().Add(-time.Minute), 4))
	cmd := exec.Command("lately", "follow", "--rules", rules, "--dry-run", log)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	out.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != exitInput {
			t.Errorf("ends with %v, want exit code %d", err, exitInput)
		}
	case <-time.After(time.Minute):
		t.Error("goes on a minute after its reader has ended")
	}
}
