package rules_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestDocumentedRules parses each rules file in the documentation.
func TestDocumentedRules(t *testing.T) {
	block := regexp.MustCompile("(?s)\n```yaml\n((?:# [^\n]*\n)*version: 1\n.*?)\n```\n")
	found := 0
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md"} {
		pages := must.Get(filepath.Glob(filepath.FromSlash(pattern)))(t)
		for _, page := range pages {
			text := must.Get(os.ReadFile(page))(t)
			for _, m := range block.FindAllSubmatch(text, -1) {
				if bytes.Contains(m[1], []byte("\ntests:\n")) {
					continue // a file of tests
				}
				found++
				if _, err := rules.Parse(page, m[1]); err != nil {
					t.Errorf("%s:\n%s\n%v", page, m[1], err)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d rules files found, want at least 8", found)
	}
}
