package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lately-go/lately/rules"
)

// TestReadmeRules parses the rules file that the README shows.
func TestReadmeRules(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\n```yaml\n")
	if !ok {
		t.Fatal("the README shows no rules file")
	}
	block, _, _ := strings.Cut(after, "\n```")
	file, err := rules.Parse("README.md", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if file.Limits.Len() != 3 || file.Hot.Len() != 1 || len(file.Warnings) > 0 {
		t.Errorf("%d limits and bans, %d hot rules, warnings %v; want 3, 1, none", file.Limits.Len(), file.Hot.Len(), file.Warnings)
	}
}
