//go:build !explore

package ring

import (
	"os/exec"
	"strings"
	"testing"
)

// The tests of the explorer need a build of their own. Their long form, and all
// the figures:
//
//	LATELY_LONG=1 go test -tags explore -run Explore -timeout 1h -v ./internal/counting/ring
func TestExploreBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: builds the package again")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("SKIPPED: no go command")
	}
	out, err := exec.CommandContext(t.Context(), goTool, "test", "-tags", "explore", "-run", "Explore", "-timeout", "0", "-v", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestExploreControls") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "in all") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
