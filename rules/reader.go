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

	"github.com/lately-go/lately/match"
)

// A reader reads one file and collects its mistakes.
type reader struct {
	file     string
	errs     Errors
	warnings Errors
	names    map[string]place // of rules and counters
	fold     match.Fold       // of all keys

	onDisk     bool        // files of the allow list are read
	read       []version   // of these files
	allowFiles []AllowFile // if not onDisk, those that are known
}

// A place is a line and a column, from 1.
type place struct{ line, column int }

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

// parse reads data by read, which gets its one document, and returns all mistakes.
func (r *reader) parse(data []byte, read func(root ast.Node)) error {
	if root := r.tree(data); len(r.errs) == 0 {
		read(root)
	}
	r.warnings.sort()
	if r.errs.sort(); len(r.errs) > 0 {
		return r.errs
	}
	return nil
}

// tree parses data into its one document. It returns nil after a mistake.
func (r *reader) tree(data []byte) ast.Node {
	if len(data) > maxSize {
		r.failAt(1, 1, "file: too large: must be at most %d bytes", maxSize)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if i := notText(data); i >= 0 {
		line := data[bytes.LastIndexByte(data[:i], '\n')+1 : i]
		r.failAt(1+bytes.Count(data[:i], []byte{'\n'}), 1+utf8.RuneCount(line), "byte 0x%02x: must be UTF-8 text without NUL", data[i])
		return nil
	}
	// The lexer counts a line twice that ends in a comment and "\r\n".
	tokens := lexer.Tokenize(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if len(tokens) > maxTokens {
		line, column := tokenPosition(tokens[maxTokens])
		r.failAt(line, column, "file: too large: must be at most %d words and marks", maxTokens)
		return nil
	}
	limits := yamlLimits{r: r}
	for _, t := range tokens {
		if !limits.admit(t) {
			return nil
		}
	}
	if !limits.content {
		r.failAt(1, 1, `file: empty: must be at least "version: 1"`)
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
	r.failAt(1, 1, `file: not a mapping: must begin with "version: 1"`)
	return nil
}

// notText returns the index of the first byte of data that is NUL or not UTF-8, or -1.
func notText(data []byte) int {
	for i, c := range string(data) {
		if c == 0 || c == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\ufffd")) {
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
func (r *reader) syntax(err error) {
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
	r.failAt(line, column, "syntax error: %s", message)
}
