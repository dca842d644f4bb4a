package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestTrackRecord checks that the tests named in the last column of the track record exist.
func TestTrackRecord(t *testing.T) {
	declared, named := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), regexp.MustCompile("`((?:Test|Fuzz)\\w+)")
	exists, rows := make(map[string]bool), 0
	must.Do(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			exists[string(m[1])] = true
		}
		return err
	}))
	for row := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join(root, "docs", "dev", "track-record.md")))(t))) {
		cells := strings.Split(row, " | ")
		if !strings.HasPrefix(row, "| 20") {
			continue
		}
		rows++
		for _, m := range named.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if !exists[m[1]] {
				t.Errorf("there is no %s: a row must name a test that fails if its bug returns, or state why there is none:\n%s", m[1], row)
			}
		}
	}
	if rows < 300 {
		t.Errorf("%d rows, want them all", rows)
	}
}
