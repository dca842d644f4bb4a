//go:build !explore

package ring

import (
	"os/exec"
	"strings"
	"testing"
)

// The tests of explore_test.go need a build of their own.
func TestExploreBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: takes half a minute")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("SKIPPED: no go command")
	}
	out, err := exec.CommandContext(t.Context(), goTool, "test", "-tags", "explore", "-run", "Explore", "-v", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestExploreControls") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "in all") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
