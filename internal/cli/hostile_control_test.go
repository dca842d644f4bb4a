package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/overlay"
)

// A fault switches a defence off by changes in a file: each text, followed by its replacement. Without the defence, the case
// fails with the text in says.
type fault struct {
	file, says string
	changes    []string
}

// TestHostileControls builds the program without the defence in each case of TestHostile, and runs the case: it must fail with
// the text of the fault.
//
//	make hostile-controls
func TestHostileControls(t *testing.T) {
	if os.Getenv("LATELY_HOSTILE_CONTROLS") == "" {
		t.Skip("SKIP: each control builds the program and lasts up to two minutes; run make hostile-controls")
	}
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	self := must.Get(os.Executable())(t)
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) {
			test := exec.Command(self, "-test.run", "^TestHostile$/^"+strings.ReplaceAll(c.name, " ", "_")+"$", "-test.v")
			test.Env = append(os.Environ(), "LATELY_HOSTILE="+filepath.Dir(c.control.apply(t, root).Build(t, root)), "LATELY_HOSTILE_CONTROLS=")
			out, err := test.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.control.says) {
				t.Errorf("without its defence the case must fail with %q: %v\n%s", c.control.says, err, out)
			}
		})
	}
}

// TestHostileControlsApply checks that each defence can still be switched off, and that the program without it compiles: a
// change of a defence must change its control, too.
func TestHostileControlsApply(t *testing.T) {
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	checker := overlay.NewChecker(t, root)
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) { must.Do(t, checker.Check(c.control.apply(t, root))) })
	}
}

// apply returns the file with the fault.
func (f *fault) apply(t *testing.T, root string) overlay.Files {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(f.file))
	text := string(must.Get(os.ReadFile(path))(t))
	for i := 0; i < len(f.changes); i += 2 {
		if n := strings.Count(text, f.changes[i]); n != 1 {
			t.Fatalf("%s has %q %d times: the control must follow the change", f.file, f.changes[i], n)
		}
	}
	return overlay.Files{path: strings.NewReplacer(f.changes...).Replace(text)}
}
