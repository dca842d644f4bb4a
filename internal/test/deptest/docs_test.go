package deptest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, filepath.FromSlash(path))))(t)
	return string(text)
}

// indexed returns the pages below docs/ in the order in which docs/README.md links them first.
func indexed(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range linked.FindAllStringSubmatch(read(t, "docs/README.md"), -1) {
		page, _, _ := strings.Cut(m[1], "#")
		if strings.HasSuffix(page, ".md") && !strings.HasPrefix(page, "..") && !strings.HasPrefix(page, "dev/") && !strings.HasPrefix(page, "zh/") && !slices.Contains(all, page) {
			all = append(all, page)
		}
	}
	return all
}

// chained returns text with the line of links to the page before and the page after that
// belongs at its end.
func chained(page, text, before, after string) string {
	text = regexp.MustCompile(`\n(Previous: .*|Next: .*)\n$`).ReplaceAllString(text, "")
	link := func(to string) string {
		rel, err := filepath.Rel(filepath.Dir(page), to)
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf("[%s](%s)", strings.TrimSuffix(filepath.Base(to), ".md"), filepath.ToSlash(rel))
	}
	var parts []string
	if before != "" {
		parts = append(parts, "Previous: "+link(before))
	}
	if after != "" {
		parts = append(parts, "Next: "+link(after))
	}
	return strings.TrimRight(text, "\n") + "\n\n" + strings.Join(parts, ". ") + ".\n"
}

// Each page of the documentation is in the index, and ends with links to the pages before
// and after it there. Run it with UPDATE=1 to write them.
func TestPagesAreChained(t *testing.T) {
	order := indexed(t)
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md"} {
		found := must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern))))(t)
		for _, path := range found {
			page, err := filepath.Rel(filepath.Join(root, "docs"), path)
			if page = filepath.ToSlash(page); err != nil || page != "README.md" && !slices.Contains(order, page) {
				t.Errorf("%s is not in docs/README.md", page)
			}
		}
	}
	checkChain(t, "docs/", order)
	checkChain(t, "docs/zh/", chinesePages)
}

func checkChain(t *testing.T, folder string, order []string) {
	t.Helper()
	for i, page := range order {
		before, after := "", ""
		if i > 0 {
			before = order[i-1]
		}
		if i+1 < len(order) {
			after = order[i+1]
		}
		text := read(t, folder+page)
		want := chained(page, text, before, after)
		if text == want {
			continue
		}
		if os.Getenv("UPDATE") == "" {
			t.Errorf("%s%s does not end with its neighbours in the index; run this test with UPDATE=1", folder, page)
		} else {
			must.Do(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(folder+page)), []byte(want), 0o644))
		}
	}
}

// The control: a page that names no neighbour, or another one, is found.
func TestOtherNeighbourIsFound(t *testing.T) {
	const good = "# A\n\ntext\n\nPrevious: [b](../b.md). Next: [c](c.md).\n"
	if got := chained("guides/a.md", good, "b.md", "guides/c.md"); got != good {
		t.Errorf("a page with its neighbours is changed to\n%s", got)
	}
	for _, other := range []string{"# A\n\ntext\n", "# A\n\ntext\n\nPrevious: [b](../b.md). Next: [d](d.md).\n", "# A\n\ntext\n\nNext: [c](c.md).\n"} {
		if got := chained("guides/a.md", other, "b.md", "guides/c.md"); got != good {
			t.Errorf("%q becomes\n%s", other, got)
		}
	}
}

// withoutFailures are the pages that describe and compare: following them cannot fail.
var withoutFailures = []string{"README.md", "algorithms.md", "benchmarks.md", "comparison.md", "concepts.md", "faq.md", "recipes.md", "guides/slow-morning.md", "guides/migration.md"}

// Every other page has a table of what its reader may see and what it means.
func TestFailuresAreExplained(t *testing.T) {
	for _, page := range indexed(t) {
		has := strings.Contains(read(t, "docs/"+page), "\n## Troubleshooting\n\n| you see | it means |\n")
		if want := !slices.Contains(withoutFailures, page) && page != "troubleshooting.md"; has != want {
			t.Errorf("docs/%s has a table of what its reader sees: %v, want %v", page, has, want)
		}
	}
}

// The first page has at most 120 lines.
func TestFirstPageIsShort(t *testing.T) {
	for _, page := range []string{"README.md", "README.zh.md"} {
		if n := strings.Count(read(t, page), "\n"); n > 120 {
			t.Errorf("%s has %d lines, want at most 120", page, n)
		}
	}
}

// questions are the first questions of users: the index links an answer to
// each.
var questions = []string{
	"API keys and plans", "LLM tokens per user and day", "an office network", "bans on 401s", "is it working?", "what if it is down",
	"hashing and privacy", "tenants", "bytes and bandwidth", "upgrade without losing counts", "Helm", "Windows and macOS",
}

func TestQuestionsAreInTheIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, q := range questions {
		if !strings.Contains(index, "["+q+"](") {
			t.Errorf("docs/README.md has no link %q", q)
		}
	}
}

// chinesePages are the pages in docs/zh, in their order. README.zh.md is one more.
var chinesePages = []string{"getting-started.md", "rules.md", "hot-keys.md", "fleet.md", "library.md"}

var (
	fenced   = regexp.MustCompile("(?s)\n```.*?\n```\n")
	anyLevel = regexp.MustCompile(`(?m)^#+ `)
)

// skeleton returns what a page and its translation have in common: blocks of code, and the
// levels of headings, in their order.
func skeleton(text string) (all []string) {
	for {
		at := fenced.FindStringIndex(text)
		end := len(text)
		if at != nil {
			end = at[0]
		}
		for _, h := range anyLevel.FindAllString(text[:end], -1) {
			all = append(all, strings.TrimSpace(h))
		}
		if at == nil {
			return all
		}
		all = append(all, strings.TrimSpace(text[at[0]:at[1]]))
		text = text[at[1]-1:]
	}
}

// The Chinese pages have the commands, programs and headings of the English ones.
func TestChinesePages(t *testing.T) {
	pairs := map[string]string{"README.md": "README.zh.md"}
	for _, page := range chinesePages {
		english := "docs/" + page
		if page == "fleet.md" {
			english = "docs/guides/" + page
		}
		pairs[english] = "docs/zh/" + page
	}
	for english, chinese := range pairs {
		want, got := skeleton(read(t, english)), skeleton(read(t, chinese))
		if len(want) < 5 {
			t.Errorf("%s has only %d headings and blocks", english, len(want))
		}
		for i := range max(len(want), len(got)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s is not in step with %s at heading or block %d:\n%s\nwant\n%s", chinese, english, i+1, at(got, i), at(want, i))
				break
			}
		}
		if n := len(regexp.MustCompile(`\p{Han}`).FindAllString(read(t, chinese), -1)); n < 300 {
			t.Errorf("%s has %d Chinese characters", chinese, n)
		}
	}
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "nothing"
}

// The control: another command, a missing heading and one of another level are found.
func TestOtherTranslationIsFound(t *testing.T) {
	const english = "# A\n\n```sh\nmake\n```\n\n## B\n\ntext\n"
	if same := "# 甲\n\n```sh\nmake\n```\n\n## 乙\n\n文\n"; !slices.Equal(skeleton(english), skeleton(same)) {
		t.Errorf("%q is not in step: %q", same, skeleton(same))
	}
	for _, other := range []string{"# 甲\n\n```sh\nmake test\n```\n\n## 乙\n", "# 甲\n\n```sh\nmake\n```\n\n### 乙\n", "# 甲\n\n```sh\nmake\n```\n", "# 甲\n\n## 乙\n\n```sh\nmake\n```\n"} {
		if slices.Equal(skeleton(english), skeleton(other)) {
			t.Errorf("%q is taken for a translation", other)
		}
	}
}
