package latelyredis_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/lately-go/lately/internal/test/redistest"
)

// TestValkey runs all tests of this package with valkey-server.
func TestValkey(t *testing.T) {
	const valkey = "valkey-server"
	if os.Getenv(redistest.ProgramVariable) != "" {
		t.Skip("the tests run with a server of choice already")
	}
	if _, err := exec.LookPath(valkey); err != nil {
		t.Skipf("SKIP: there is no %s here", valkey)
	}
	args := []string{"-test.skip=^TestValkey$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	tests := exec.CommandContext(t.Context(), os.Args[0], args...)
	tests.Env = append(os.Environ(), redistest.ProgramVariable+"="+valkey)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
