package deptest

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// A program outside this repository gets an adapter in the version that
// tools/release has tagged, with the library in the same version.
func TestReleasedAdapters(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks three frameworks and their dependencies")
	}
	const version = "0.99.0"
	clone := releasedClone(t, version)
	env, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Skip("SKIP: there is no go command to build with")
	}
	modcache, goproxy, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	f := fixture{t: t, program: t.TempDir(), proxy: t.TempDir(), cache: t.TempDir(), others: []string{filepath.Join(modcache, "cache", "download")}, online: goproxy}
	f.publish(clone, "", version)
	program, calls, get := "package main\n\nimport (\n", "", []string{"get"}
	for _, adapter := range []string{"gin", "echo", "fiber", "goredis"} {
		download := exec.Command("go", "mod", "download")
		download.Dir = filepath.Join(root, "adapters", adapter)
		if out, err := download.CombinedOutput(); err != nil {
			t.Skipf("SKIP: the modules of adapters/%s cannot be downloaded: %s", adapter, out)
		}
		f.publish(clone, "adapters/"+adapter, version)
		importPath := modulePath + "/adapters/" + adapter
		program += "\tlately" + adapter + " \"" + importPath + "\"\n"
		calls += "\t_ = lately" + adapter + ".New\n"
		get = append(get, importPath+"@v"+version)
	}
	f.write(filepath.Join(f.program, "go.mod"), "module fixture.example/program\n\ngo 1.26.0\n")
	f.write(filepath.Join(f.program, "main.go"), program+")\n\nfunc main() {\n"+calls+"}\n")
	// All packages are there; only the smallest framework is compiled too.
	for _, args := range [][]string{get, {"list", "-deps", "."}, {"build", "-trimpath", "-o", os.DevNull, modulePath + "/adapters/echo"}} {
		if out, err := f.run(args...); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := f.run("list", "-m", modulePath); err != nil || strings.TrimSpace(out) != modulePath+" v"+version {
		t.Errorf("the program has %q, error %v; want the library in v%s", out, err, version)
	}
}

// Windows, empty images and small installations have no time zone database, and rules may name time zones.
func TestReleasedBinariesHaveTimeZones(t *testing.T) {
	for _, name := range []string{"tools/release", "Dockerfile", "Makefile"} {
		text := must.Get(os.ReadFile(filepath.Join(root, name)))(t)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "-s -w") && !strings.Contains(line, "-tags timetzdata") {
				t.Errorf("%s: a build without the tag timetzdata: %s", name, line)
			}
		}
	}
}

// releasedClone clones this repository and tags a version in the clone.
func releasedClone(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", root, dir).CombinedOutput(); err != nil {
		t.Skipf("SKIP: this is no clone of the repository: %s", out)
	}
	changelog := filepath.Join(dir, "CHANGELOG.md")
	text := must.Get(os.ReadFile(changelog))(t)
	text = append(text, "\n## "+version+" (unreleased)\n"...)
	must.Do(t, os.WriteFile(changelog, text, 0o644))
	for _, command := range [][]string{{"git", "commit", "-qam", "changelog: a version to test with"}, {"bash", "tools/release", "tag", version}} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.org", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	return dir
}

// publish puts the module in a folder of a clone into the module proxy of f, as it
// was tagged.
func (f fixture) publish(clone, folder, version string) {
	f.t.Helper()
	tag := path.Join(folder, "v"+version)
	cmd := exec.Command("git", "archive", "--format=zip", tag)
	cmd.Dir = filepath.Join(clone, filepath.FromSlash(folder))
	tagged, err := cmd.Output()
	f.check(err)
	from, err := zip.NewReader(bytes.NewReader(tagged), int64(len(tagged)))
	f.check(err)
	texts := map[string]string{}
	var nested []string
	for _, file := range from.File {
		r, err := file.Open()
		f.check(err)
		text, err := io.ReadAll(r)
		f.check(err)
		texts[file.Name] = string(text)
		if dir, base := path.Split(file.Name); base == "go.mod" && dir != "" {
			nested = append(nested, dir)
		}
	}
	for name := range texts {
		if strings.HasSuffix(name, "/") || slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			delete(texts, name)
		}
	}
	f.serve(path.Join(modulePath, folder), "v"+version, texts)
}
