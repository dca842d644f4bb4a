package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

var update = flag.Bool("update", false, "write the golden files of this test")

// TestSentences compares the sentences for each file in testdata with those written beside it.
func TestSentences(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v, %v", files, err)
	}
	for _, path := range files {
		f, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		got := strings.Join(f.Sentences(), "\n") + "\n"
		golden := strings.TrimSuffix(path, ".yaml") + ".golden"
		if *update {
			must.Do(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want := must.Get(os.ReadFile(golden))(t)
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}
