package rules

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A reader reads one rules file and collects what is wrong with it.
type reader struct {
	file     string
	errs     Errors
	warnings Errors
	names    map[string]int // of rules and counters, with their lines
}

// fail records a mistake at n.
func (r *reader) fail(n ast.Node, format string, args ...any) {
	line, column := position(n)
	r.failAt(line, column, format, args...)
}

func (r *reader) failAt(line, column int, format string, args ...any) {
	r.errs = append(r.errs, &Error{r.file, line, column, fmt.Sprintf(format, args...)})
}

func (r *reader) warn(n ast.Node, format string, args ...any) {
	line, column := position(n)
	r.warnings = append(r.warnings, &Error{r.file, line, column, fmt.Sprintf(format, args...)})
}

// position returns where n begins. The token of a block mapping is its first
// ':', so its position is that of its first key.
func position(n ast.Node) (line, column int) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0]
	}
	if v, ok := n.(*ast.MappingValueNode); ok && v.Key != nil {
		n = v.Key
	}
	if n == nil {
		return 1, 1
	}
	return tokenPosition(n.GetToken())
}

func tokenPosition(t *token.Token) (line, column int) {
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return t.Position.Line, t.Position.Column
}

// tree parses data into the one document that it holds. After a mistake there
// is none.
func (r *reader) tree(data []byte) ast.Node {
	if len(data) > MaxSize {
		r.failAt(1, 1, "the file is larger than %d bytes, the most that is allowed", MaxSize)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !r.isText(data) {
		return nil
	}
	// The lexer counts a line twice that ends in a comment and "\r\n".
	tokens := lexer.Tokenize(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if len(tokens) > maxTokens {
		line, column := tokenPosition(tokens[maxTokens])
		r.failAt(line, column, "the file is too large; allowed is at most %d words and marks", maxTokens)
		return nil
	}
	limits := yamlLimits{r: r}
	for _, t := range tokens {
		if !limits.admit(t) {
			return nil
		}
	}
	if !limits.content {
		r.failAt(1, 1, `the file is empty; the least that is allowed is "version: 1"`)
		return nil
	}
	doc, err := parse(tokens)
	if err != nil {
		r.syntax(err)
		return nil
	}
	for _, d := range doc.Docs {
		if d != nil && d.Body != nil {
			return d.Body
		}
	}
	r.failAt(1, 1, "the file is not a mapping; it begins with \"version: 1\"")
	return nil
}

// isText reports whether data is UTF-8 without NUL bytes.
func (r *reader) isText(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			r.failAt(line, column, "byte 0x%02x is no UTF-8 text; allowed is a file in UTF-8", data[i])
			return false
		case c == 0:
			r.failAt(line, column, "there is a NUL byte; allowed is text")
			return false
		case c == '\n':
			line, column = line+1, 0
		}
		i += size
		column++
	}
	return true
}

// parse parses tokens. The parser is another's: should it panic on a file that
// nobody thought of, a server that reloads its rules must live on.
func parse(tokens token.Tokens) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is no YAML that can be read (%v)", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntax records the parser's error, at its position when it has one.
func (r *reader) syntax(err error) {
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &at) {
		r.failAt(1, 1, "syntax error: %s", oneLine(err.Error()))
		return
	}
	line, column := tokenPosition(at.GetToken())
	r.failAt(line, column, "syntax error: %s", oneLine(at.GetMessage()))
}

// oneLine returns another's message in one line, as errors are printed. A tab,
// which is what such a message may be about, is written as \t.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\t", `\t`)), " ")
}
