package deptest

import (
	"archive/zip"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

const fixtureVersion = "v0.0.1" // what the fixture's go.mod requires

// A program that imports the library must download one module: this one. The
// checkout is packed into a module proxy of files that has nothing else, and
// the packages of the fixture are loaded from it with an empty module cache. So
// not even the go.mod file of another module is needed.
func TestProgramDownloadsOneModule(t *testing.T) {
	f := newFixture(t, nil)
	out, err := f.packages()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for pkg := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		if _, ours := folderOf(pkg); !ours && pkg != "fixture.example/program" && !strings.HasPrefix(pkg, "go: downloading "+modulePath) {
			t.Errorf("the program is linked with %s", pkg)
		}
	}
	want := []string{modulePath + "/@v/" + fixtureVersion + ".zip"}
	if got := f.downloaded(); !slices.Equal(got, want) {
		t.Errorf("the program downloaded %v, want %v", got, want)
	}
}

// The control: with one import of another module planted, the packages cannot be
// loaded, and the error names it.
func TestLargerProgramIsRejected(t *testing.T) {
	const planted = "github.com/goccy/go-yaml"
	f := newFixture(t, map[string]string{
		"match/planted.go": "package match\n\nimport _ \"" + planted + "\"\n",
	})
	if out, err := f.packages(); err == nil || !strings.Contains(out, planted) {
		t.Errorf("match imports %s, and go list prints %v:\n%s", planted, err, out)
	}
}

// A fixture is a copy of the fixture program in a folder of its own, with its
// own module cache and the proxy it may load from.
type fixture struct {
	t            *testing.T
	program      string
	proxy, cache string
	others       []string // folders of more module proxies
	online       string   // the user's GOPROXY, for go.mod files that no single adapter needs; may be empty
}

// newFixture packs the checkout, with planted files added, and copies the
// program without the imports of packages that do not exist.
func newFixture(t *testing.T, planted map[string]string) fixture {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to build with")
	}
	dir := t.TempDir()
	f := fixture{t: t, program: filepath.Join(dir, "program"), proxy: filepath.Join(dir, "proxy"), cache: filepath.Join(dir, "cache")}
	f.pack(planted)

	var program []string
	for line := range strings.Lines(f.read("testdata/fixture/main.go")) {
		if quoted := strings.Split(line, `"`); len(quoted) == 3 && !exists(quoted[1]) {
			t.Logf("%s does not exist yet: the fixture does without it", quoted[1])
			continue
		}
		program = append(program, line)
	}
	f.write(filepath.Join(f.program, "main.go"), strings.Join(program, ""))
	f.write(filepath.Join(f.program, "go.mod"), f.read("testdata/fixture/go.mod"))
	return f
}

// exists reports whether a package of this module has a file to build.
func exists(importPath string) bool {
	folder := strings.TrimPrefix(importPath, modulePath)
	files, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	return slices.ContainsFunc(files, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
}

// pack puts the checkout, with planted files added, into the module proxy.
func (f fixture) pack(planted map[string]string) {
	f.t.Helper()
	texts := map[string]string{}
	for _, name := range moduleFiles(f.t) {
		texts[name] = f.read(filepath.Join(root, filepath.FromSlash(name)))
	}
	maps.Copy(texts, planted)
	f.serve(modulePath, fixtureVersion, texts)
}

// serve writes the files of a module proxy for a module with these files: see "GOPROXY protocol" in the Go modules
// reference.
func (f fixture) serve(module, version string, texts map[string]string) {
	f.t.Helper()
	base := filepath.Join(f.proxy, filepath.FromSlash(module), "@v")
	f.write(filepath.Join(base, "list"), version+"\n")
	f.write(filepath.Join(base, version+".info"), `{"Version":"`+version+`"}`)
	f.write(filepath.Join(base, version+".mod"), texts["go.mod"])

	file, err := os.Create(filepath.Join(base, version+".zip"))
	f.check(err)
	archive := zip.NewWriter(file)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		w, err := archive.Create(module + "@" + version + "/" + name)
		f.check(err)
		_, err = io.WriteString(w, texts[name])
		f.check(err)
	}
	f.check(archive.Close())
	f.check(file.Close())
}

// moduleFiles lists the go.mod and the Go files of the module.
func moduleFiles(t *testing.T) []string {
	t.Helper()
	fsys := os.DirFS(root)
	names := []string{"go.mod"}
	must.Do(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && ignored(fsys, name) {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{".go", ".s", ".txt"}, path.Ext(name)) {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// packages lists the packages that the program is linked with, but for the standard library.
func (f fixture) packages() (string, error) {
	return f.run("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
}

// run runs the go command on the program, without the network, the user's settings
// and the user's module cache. Its proxies are that of f, the others, and the one online.
func (f fixture) run(args ...string) (string, error) {
	f.t.Helper()
	proxies := make([]string, 0, 2)
	for _, dir := range append([]string{f.proxy}, f.others...) {
		if dir = filepath.ToSlash(dir); runtime.GOOS == "windows" {
			dir = "/" + dir
		}
		proxies = append(proxies, "file://"+dir)
	}
	if f.online != "" {
		proxies = append(proxies, f.online)
	}
	cmd := exec.CommandContext(f.t.Context(), "go", args...)
	cmd.Dir = f.program
	cmd.Env = append(os.Environ(),
		"GOPROXY="+strings.Join(proxies, ","), "GOMODCACHE="+f.cache, "GOFLAGS=-mod=mod -modcacherw -trimpath",
		"GOENV=off", "GOWORK=off", "GOSUMDB=off", "GONOPROXY=none", "GOPRIVATE=", "GOTOOLCHAIN=local", "GOVCS=*:off",
	)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// downloaded lists the module sources in the module cache.
func (f fixture) downloaded() []string {
	f.t.Helper()
	var zips []string
	cache := os.DirFS(filepath.Join(f.cache, "cache", "download"))
	f.check(fs.WalkDir(cache, ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".zip" {
			zips = append(zips, name)
		}
		return err
	}))
	return zips
}

func (f fixture) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(name)
	f.check(err)
	return string(text)
}

func (f fixture) write(name, text string) {
	f.t.Helper()
	f.check(os.MkdirAll(filepath.Dir(name), 0o755))
	f.check(os.WriteFile(name, []byte(text), 0o644))
}

func (f fixture) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}
