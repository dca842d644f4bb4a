package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

func TestCheck(t *testing.T) {
	root := must.Get(filepath.Abs(filepath.Join("..", "..", "..")))(t)
	path := filepath.Join(root, "internal", "cli", "version.go")
	text, c := string(must.Get(os.ReadFile(path))(t)), NewChecker(t, root)
	for _, x := range []struct{ name, path, text, want string }{
		{"unchanged", path, text, ""},
		{"not Go", path, text + "}", "expected declaration"},
		{"an unknown name", path, text + "var _ = unknown", "undefined: unknown"},
		{"an import that is not used", path, strings.Replace(text, "import (", `import ("unsafe"`, 1), "imported and not used"},
		{"no package", filepath.Join(root, "docs", "x.go"), text, "no package in this folder"},
	} {
		err := c.Check(Files{x.path: x.text})
		if ok := err == nil; ok != (x.want == "") || !ok && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}
