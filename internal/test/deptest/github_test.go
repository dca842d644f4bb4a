package deptest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lately-go/lately/internal/test/must"
)

// settings reads a YAML file of .github into v.
func settings(t *testing.T, name string, v any) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, ".github", name)))(t)
	if err := yaml.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// The workflow runs every part of the script that contributors run, side by side, and
// nothing beside it that could differ.
func TestWorkflowRunsTheScript(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct{ Matrix struct{ Part []string } }
			Steps    []struct{ Run string }
		}
	}
	settings(t, "workflows/ci.yml", &workflow)
	var commands, parts []string
	for _, job := range workflow.Jobs {
		parts = append(parts, job.Strategy.Matrix.Part...)
		for _, step := range job.Steps {
			if step.Run != "" {
				commands = append(commands, step.Run)
			}
		}
	}
	if want := []string{`sudo env "PATH=$PATH" tools/have-servers`, ".ci/run ${{ matrix.part }}"}; !slices.Equal(commands, want) {
		t.Errorf("the workflow runs %q, want %q", commands, want)
	}
	script := must.Get(os.ReadFile(filepath.Join(root, ".ci", "run")))(t)
	if all := "|| set -- " + strings.Join(parts, " ") + "\n"; !strings.Contains(string(script), all) {
		t.Errorf("the parts of the workflow are %q; .ci/run has no line that ends with %q", parts, all)
	}
}

// Dependabot looks at every module of the repository.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	settings(t, "dependabot.yml", &config)
	var patterns []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			patterns = append(patterns, u.Directories...)
		}
	}
	for _, dir := range modules(t) {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, "/"+dir); return ok }) {
			t.Errorf("the module in %s matches none of %q", dir, patterns)
		}
	}
}

// modules lists the folders with a go.mod, without testdata.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (ignoredName(d.Name()) || slices.Contains([]string{"testdata", "node_modules", "bin"}, d.Name())) {
			return filepath.SkipDir
		}
		if d.Name() == "go.mod" {
			dir, _ := filepath.Rel(root, filepath.Dir(name))
			dirs = append(dirs, strings.TrimPrefix(filepath.ToSlash(dir), "."))
		}
		return nil
	})
	if err != nil || len(dirs) < 4 {
		t.Fatalf("modules %q, error %v", dirs, err)
	}
	return dirs
}
