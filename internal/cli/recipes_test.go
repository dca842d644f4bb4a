package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// namedBlock matches a block of code whose first line is a comment with the name of a file.
var namedBlock = regexp.MustCompile("(?s)\n```[a-z]+\n(# ([\\w.-]+\\.[a-z]+)\n.*?\n)```\n")

// TestRecipes follows each recipe in a directory of its own: its files, the log of make demo, and the server that it
// starts.
func TestRecipes(t *testing.T) {
	for _, tool := range []string{"redis-cli", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP recipes: there is no %s here", tool)
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "recipes", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("the recipes are %q, %v", pages, err)
	}
	index := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "recipes.md")))(t)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			if !strings.Contains(string(index), "](recipes/"+filepath.Base(page)+")") {
				t.Error("docs/recipes.md has no link to it")
			}
			text := must.Get(os.ReadFile(page))(t)
			followRecipe(t, string(text))
		})
	}
}

func followRecipe(t *testing.T, text string) {
	dir := t.TempDir()
	must.Do(t, demoLog(filepath.Join(dir, "access.log.gz")))
	for _, m := range namedBlock.FindAllStringSubmatch(text, -1) {
		must.Do(t, os.WriteFile(filepath.Join(dir, m[2]), []byte(m[1]), 0o600))
	}
	if !strings.Contains(text, "\n$ lately test rules.yaml\n") {
		t.Error("it does not run lately test")
	}
	_, start, ok := strings.Cut(text, "\n```sh\nlately serve ")
	start, _, _ = strings.Cut(start, "\n")
	if !ok {
		t.Fatal("it starts no server: no block of sh begins with lately serve")
	}
	followSteps(t, text, dir, serveIn(t, dir, strings.Fields(start)...), 2)
}
