package deptest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/internal/test/must"
)

// banned are the patterns that no prose of this repository may have, each with
// what to write instead. Text between backquotes or double quotes is a name and
// is not looked at.
var banned = []struct{ pattern, instead string }{
	{`\ballowed is\b`, "must be"},
	{`\ballowed are\b`, "must be one of"},
	{`\bis none of\b`, "unknown, must be one of"},
	{`\bof whom is\b`, "of clients that are"},
	{`(?-i:(?:^|[.!?:;|]\s+|\n\s*\n\s*|(?:^|\n)\s*[-*#|]+\s+)Who\s)`, "a sentence that names its subject"},
	{`\bfor want of\b`, "because there is no"},
	{`\bas far as\b`, "up to, or where"},
	{`\bis said\b`, "the active: what says it"},
	{`\banew\b`, "again"},
	{`(?:^|[^.\w/-])(?:houses?|rooms?|floors?|patrols?|tellers?)(?:[^\w(/-]|$)`, "package, space, layer, reaper, responder"},
}

// A block is a piece of prose: a comment, a message or a paragraph.
type block struct {
	file string
	line int
	text string
}

var (
	quoted      = regexp.MustCompile("`[^`\n]*`" + `|"[^"\n]{0,60}"`)
	performance = regexp.MustCompile(`(?i)(performance|latency|own) floors?`)
)

// breaches returns a sentence for each banned pattern that a block has.
func (b block) breaches() []string {
	text := performance.ReplaceAllString(quoted.ReplaceAllString(b.text, "``"), "$1")
	if strings.HasPrefix(b.file, "benchmarks/") || strings.HasSuffix(b.file, "_bench_test.go") {
		text = strings.NewReplacer("floor", "base", "Floor", "Base").Replace(text)
	}
	var found []string
	for _, ban := range bannedExpressions {
		for _, at := range ban.expression.FindAllStringIndex(text, -1) {
			if ban.question && asks(text[at[0]+1:]) {
				continue
			}
			line := b.line + strings.Count(text[:at[0]], "\n")
			words := strings.Join(strings.Fields(text[at[0]:min(at[1]+20, len(text))]), " ")
			found = append(found, fmt.Sprintf("%s:%d: %q: write %s", b.file, line, words, ban.instead))
		}
	}
	return found
}

// asks reports whether a text's first sentence is a question.
func asks(text string) bool {
	end := strings.IndexAny(text, ".?!")
	return end >= 0 && text[end] == '?'
}

type bannedExpression struct {
	expression *regexp.Regexp
	instead    string
	question   bool // a question may have it
}

var bannedExpressions = func() (list []bannedExpression) {
	for _, b := range banned {
		pattern := strings.ReplaceAll(b.pattern, " ", `\s+`)
		list = append(list, bannedExpression{regexp.MustCompile("(?i)" + pattern), b.instead, strings.Contains(b.pattern, "Who")})
	}
	return list
}()

// prose returns the prose of every file below fsys: comments and messages of Go
// files, and the whole text of documents, settings, scripts and golden files.
// Left out are results of benchmarks, history and inputs of fuzz tests.
func prose(fsys fs.FS) ([]block, error) {
	var blocks []block
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && ignoredName(base) && base != ".ci" && base != ".github" || slices.Contains([]string{"node_modules", "fuzz", "bin"}, base) || name == "benchmarks/results" {
				return fs.SkipDir
			}
			return nil
		case base == "prose_test.go", base == "CHANGELOG.md", base == "LICENSE", base == "go.sum":
			return nil
		}
		if !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".txtar", ".golden", ".sh", ".js", ".css", ".html", ".json", ".service", ""}, path.Ext(name)) {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".go" {
			more, err := goProse(name, text)
			blocks = append(blocks, more...)
			return err
		}
		blocks = append(blocks, block{name, 1, withoutHistory(name, string(text))})
		return nil
	})
	return blocks, err
}

// withoutHistory empties the rows of the track record, which quote earlier texts.
func withoutHistory(name, text string) string {
	if path.Base(name) != "track-record.md" {
		return text
	}
	return regexp.MustCompile(`(?m)^\| 20.*$`).ReplaceAllString(text, "|")
}

// goProse returns the comments of a Go file and its strings of several words;
// strings that are added together are one.
func goProse(name string, text []byte) ([]block, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var blocks []block
	add := func(pos token.Pos, text string) {
		if strings.Contains(text, " ") {
			blocks = append(blocks, block{name, fset.Position(pos).Line, text})
		}
	}
	for _, group := range file.Comments {
		add(group.Pos(), group.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := joined(e); ok {
				add(e.Pos(), text)
				return false
			}
		}
		return true
	})
	return blocks, nil
}

// joined returns the text of a string, or of strings and other values that are
// added to one.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, l := joined(e.X)
		right, r := joined(e.Y)
		return left + right, e.Op == token.ADD && (l || r)
	default:
		return "", false
	}
}

func TestProse(t *testing.T) {
	blocks := must.Get(prose(os.DirFS(root)))(t)
	for _, b := range blocks {
		for _, breach := range b.breaches() {
			t.Error(breach)
		}
	}
}

// The control: each pattern is found wherever prose stands, and nothing in a
// name, a question or a word that only looks like one.
func TestPlantedProseIsFound(t *testing.T) {
	planted := []string{
		"1 s or more; allowed is 1 s to 1 h", "allowed are a and b", "x is none of the formats", "clients of whom is known",
		"It works.\nWho asks gets an answer.", "dropped for want of memory", "it is kept as far as it goes", "where it is said", "begins anew",
		"how the house is built", "the floors above", "No room\nis left", "the patrol closes", "a teller answers",
	}
	for _, text := range planted {
		for name, source := range map[string]string{
			"a/doc.md":    "# Title\n\n" + text + "\n",
			"a/a.go":      "package a\n\n// " + strings.ReplaceAll(text, "\n", "\n// ") + "\nvar x int\n",
			"a/b_test.go": "package a\n\nvar x = f(" + strconv.Quote(text[:9]) + " + " + strconv.Quote(text[9:]) + ")\n",
			"a/c.yaml":    "key: value\n# " + text + "\n",
		} {
			if got := breachesOf(t, name, source); len(got) != 1 || !strings.HasPrefix(got[0], name+":") {
				t.Errorf("%s with %q: found %q, want one breach", name, text, got)
			}
		}
	}
	for _, text := range []string{
		"math.Floor and Math.floor(x)", "a performance floor", "headroom, greenhouse, flooring", "the field `room`", `the word "anew"`,
		"Who may ask? Everyone.", "those who ask", "/rooms/12 and /house", "floor(t / slot)", "allowed isles",
	} {
		if got := breachesOf(t, "a/doc.md", text+"\n"); len(got) != 0 {
			t.Errorf("%q: found %q, want nothing", text, got)
		}
	}
	if got := breachesOf(t, "docs/track-record.md", "| 2026-01-01 | begins anew |\n"); len(got) != 0 {
		t.Errorf("a row of the track record: found %q", got)
	}
}

func breachesOf(t *testing.T, name, text string) (found []string) {
	t.Helper()
	blocks := must.Get(prose(fstest.MapFS{name: {Data: []byte(text)}}))(t)
	for _, b := range blocks {
		found = append(found, b.breaches()...)
	}
	return found
}
