package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// A fault switches a defence off, by changes in a copy of a file that the compiler reads instead: each text, and what replaces
// it. The case without this defence says so.
type fault struct {
	file, says string
	changes    []string
}

// TestHostileControls builds the program without the defence of each case of TestHostile, and runs the case: it
// must fail, and say what the fault says.
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
			test.Env = append(os.Environ(), "LATELY_HOSTILE="+c.control.build(t, root), "LATELY_HOSTILE_CONTROLS=")
			out, err := test.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.control.says) {
				t.Errorf("without its defence the case must fail with %q: %v\n%s", c.control.says, err, out)
			}
		})
	}
}

// TestHostileControlsApply checks that each defence can still be switched off: who changes the code of one changes its
// control, too.
func TestHostileControlsApply(t *testing.T) {
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) { c.control.change(t, filepath.Join("..", "..", filepath.FromSlash(c.control.file))) })
	}
}

// change returns the text of the file with the fault.
func (f *fault) change(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	for i := 0; i < len(f.changes); i += 2 {
		if n := strings.Count(string(text), f.changes[i]); n != 1 {
			t.Fatalf("%s has %q %d times: the control must follow the change", f.file, f.changes[i], n)
		}
	}
	return strings.NewReplacer(f.changes...).Replace(string(text))
}

// build builds the program with the fault and returns its folder.
func (f *fault) build(t *testing.T, root string) string {
	t.Helper()
	dir, path := t.TempDir(), filepath.Join(root, filepath.FromSlash(f.file))
	text := f.change(t, path)
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	list := must.Get(json.Marshal(map[string]map[string]string{"Replace": {path: changed}}))(t)
	for name, b := range map[string][]byte{changed: []byte(text), overlay: list} {
		must.Do(t, os.WriteFile(name, b, 0o600))
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "lately"), "./cmd/lately")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", f.file, err, out)
	}
	return dir
}
