// Package yamlfile reads YAML files, and reports all mistakes at once, each with line and column.
// It limits their size and depth, so that any text can be read, and rejects anchors, aliases, merge
// keys and tags.
package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A Reader reads YAML text and reports its mistakes.
type Reader struct {
	// Report gets each mistake, or warning, with its line and column, from 1.
	Report func(line, column int, warning bool, message string)

	// Places is the values that were read, by the names of their fields, unless it is nil. Values
	// in a list have an index, too: "limit[1]". Values with a mistake are left out.
	Places map[string]ast.Node

	size   int // of all texts, in bytes
	tokens int // in them
}

// Fail reports a mistake at n.
func (r *Reader) Fail(n ast.Node, format string, args ...any) {
	line, column := Position(n)
	r.FailAt(line, column, format, args...)
}

// FailAt reports a mistake.
func (r *Reader) FailAt(line, column int, format string, args ...any) {
	r.Report(line, column, false, fmt.Sprintf(format, args...))
}

// Warn reports a warning about n.
func (r *Reader) Warn(n ast.Node, format string, args ...any) {
	line, column := Position(n)
	r.Report(line, column, true, fmt.Sprintf(format, args...))
}

// Found notes that n, the value of the field called name, could be read.
func (r *Reader) Found(name string, n ast.Node) {
	if r.Places != nil && n != nil {
		r.Places[name] = n
	}
}

// Position returns where n begins. The token of a block mapping is its first
// ':', so its position is the position of its first key.
func Position(n ast.Node) (line, column int) {
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

// Tree parses text, which follows so many lines of its file, into its one document. It returns nil after a mistake.
func (r *Reader) Tree(text string, lines int) ast.Node {
	if r.size += len(text); r.size > MaxSize {
		r.FailAt(1, 1, "file: too large: must be at most %d bytes%s", MaxSize, together(len(text), r.size))
		return nil
	}
	text = strings.TrimPrefix(text, "\ufeff")
	if i := notText(text); i >= 0 {
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		r.FailAt(1+lines+strings.Count(text[:i], "\n"), 1+utf8.RuneCountInString(line), "byte 0x%02x: must be UTF-8 text without NUL", text[i])
		return nil
	}
	// The lexer counts a line twice that ends in a comment and "\r\n".
	tokens := lexer.Tokenize(strings.ReplaceAll(text, "\r\n", "\n"))
	for _, t := range tokens {
		t.Position.Line += lines
	}
	before := r.tokens
	if r.tokens += len(tokens); r.tokens > MaxTokens {
		line, column := tokenPosition(tokens[MaxTokens-before])
		r.FailAt(line, column, "file: too large: must be at most %d words and marks%s", MaxTokens, together(len(tokens), r.tokens))
		return nil
	}
	checked := limits{r: r}
	for _, t := range tokens {
		if !checked.allow(t) {
			return nil
		}
	}
	if !checked.content {
		r.FailAt(1, 1, `file: empty: must be at least "version: 1"`)
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
	r.FailAt(1+lines, 1, `file: not a mapping: must begin with "version: 1"`)
	return nil
}

// together returns the end of a message about a size, if it is that of several texts.
func together(one, all int) string {
	if one == all {
		return ""
	}
	return ", with what is before it"
}

// notText returns the index of the first byte of text that is NUL or not UTF-8, or -1.
func notText(text string) int {
	for i, c := range text {
		if c == 0 || c == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return i
		}
	}
	return -1
}

// parse parses tokens. A panic of the parser becomes an error: a server that reloads
// its rules must survive any file.
func parse(tokens token.Tokens) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML parser cannot read this (%v)", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntax records the parser's error, at its position if it has one.
func (r *Reader) syntax(err error) {
	line, column, message := 1, 1, err.Error()
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &at) {
		line, column = tokenPosition(at.GetToken())
		message = at.GetMessage()
	}
	// In one line, as errors are printed. A tab, which the message may be about, is
	// written as \t.
	message = strings.Join(strings.Fields(strings.ReplaceAll(message, "\t", `\t`)), " ")
	r.FailAt(line, column, "syntax error: %s", message)
}
