package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// A testFunc is a function of the tests of a package.
type testFunc struct {
	concurrent bool // it starts a goroutine, or calls a function of the tests that does
	calls      []string
}

// testFuncs returns the functions in the test files among files, by name.
func testFuncs(t *testing.T, files []source) map[string]*testFunc {
	t.Helper()
	funcs := map[string]*testFunc{}
	for _, f := range files {
		if !strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution))(t)
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				funcs[d.Name.Name] = readFunc(d)
			}
		}
	}
	for again := true; again; {
		again = false
		for _, f := range funcs {
			if !f.concurrent && slices.ContainsFunc(f.calls, func(name string) bool { return funcs[name] != nil && funcs[name].concurrent }) {
				f.concurrent, again = true, true
			}
		}
	}
	return funcs
}

func readFunc(d *ast.FuncDecl) *testFunc {
	f := new(testFunc)
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			f.concurrent = true
		case *ast.CallExpr:
			switch called := n.Fun.(type) {
			case *ast.Ident:
				f.calls = append(f.calls, called.Name)
			case *ast.SelectorExpr:
				f.concurrent = f.concurrent || called.Sel.Name == "Go" || called.Sel.Name == "RunParallel"
				f.calls = append(f.calls, called.Sel.Name)
			}
		}
		return true
	})
	return f
}

// unnamed returns the tests in files that start goroutines, though their names lack
// Concurrent.
func unnamed(t *testing.T, files []source) (names []string) {
	for name, f := range testFuncs(t, files) {
		if f.concurrent && strings.HasPrefix(name, "Test") && name != "TestMain" && !strings.Contains(name, "Concurrent") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// racePackages returns the packages whose tests all run under the race detector in the Makefile. In other packages, it runs
// the tests with Concurrent in their names.
func racePackages(t *testing.T) []string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	line := regexp.MustCompile(`(?m)^CONCURRENT = ((?:.*\\\n)*.*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("the Makefile does not define CONCURRENT")
	}
	return strings.Fields(strings.ReplaceAll(line[1], "\\\n", " "))
}

// Each test that starts goroutines runs under the race detector: its package is concurrent, or its name is. The tests of
// internal/cli and of storm start processes and wait for them.
func TestRaceDetectorSeesGoroutines(t *testing.T) {
	packages := map[string][]source{}
	for _, f := range loadModule(t) {
		packages[f.folder] = append(packages[f.folder], f)
	}
	concurrent := racePackages(t)
	for folder, files := range packages {
		if slices.Contains(concurrent, folder) || folder == "internal/cli" || folder == "internal/test/storm" {
			continue
		}
		for _, name := range unnamed(t, files) {
			t.Errorf("%s: %s starts a goroutine: its name must have Concurrent, so that make test-race runs it", folder, name)
		}
	}
}

// The control: what starts a goroutine is found, directly and in a function that is called.
func TestUnnamedConcurrency(t *testing.T) {
	files := []source{{name: "x_test.go", text: `package x
func TestPlain(t *testing.T)      { add() }
func TestStatement(t *testing.T)  { go add() }
func TestGroup(t *testing.T)      { wg.Go(add) }
func TestCaller(t *testing.T)     { start() }
func TestConcurrent(t *testing.T) { start() }
func start()                      { func() { go add() }() }
func add()                        {}
`}}
	if got, want := unnamed(t, files), []string{"TestCaller", "TestGroup", "TestStatement"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
