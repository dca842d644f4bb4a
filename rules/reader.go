package rules

import (
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

// A reader reads files as one and collects their mistakes.
type reader struct {
	file     string     // that is being read
	docs     []document // of all files
	size     int        // of the files so far, in bytes
	tokens   int        // in them
	errs     Errors
	warnings Errors
	names    map[string]place // of rules and counters
	fold     match.Fold       // of all keys
	fields   []match.Source   // of the section fields
	fieldsAt map[string]place

	// places is the values in the rule that is read, by the names of their fields, for errors about them. Values in
	// a list have an index, too: "limit[1]". Those with a mistake are left out.
	places map[string]ast.Node

	prefixes   int         // in the files of the allow list so far
	onDisk     bool        // files of the allow list are read
	read       []version   // of these files, and of those of plans
	allowFiles []AllowFile // if not onDisk, those that are known

	plans       []*planTable // the files of plans that were read
	plansBefore []*planTable // those of the rules before
}

// A place is a line and a column, from 1, in a file.
type place struct {
	file         string
	line, column int
}

// from returns p for a message about file.
func (p place) from(file string) string {
	if p.file == file {
		return fmt.Sprintf("line %d", p.line)
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
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

// placeOf returns the place of n in the file that is read.
func (r *reader) placeOf(n ast.Node) place {
	line, column := position(n)
	return place{r.file, line, column}
}

func tokenPosition(t *token.Token) (line, column int) {
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return t.Position.Line, t.Position.Column
}

// parse reads data by read, which gets its one document, and returns all mistakes.
func (r *reader) parse(data []byte, read func(root ast.Node)) error {
	if root := r.tree(string(data), 0); len(r.errs) == 0 {
		read(root)
	}
	return r.mistakes()
}

// mistakes sorts warnings and errors, and returns the errors.
func (r *reader) mistakes() error {
	r.warnings.sort()
	if r.errs.sort(); len(r.errs) > 0 {
		return r.errs
	}
	return nil
}

// tree parses text, which follows so many lines of its file, into its one document. It returns nil after a mistake.
func (r *reader) tree(text string, lines int) ast.Node {
	if r.size += len(text); r.size > maxSize {
		r.failAt(1, 1, "file: too large: must be at most %d bytes%s", maxSize, together(len(text), r.size))
		return nil
	}
	text = strings.TrimPrefix(text, "\ufeff")
	if i := notText(text); i >= 0 {
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		r.failAt(1+lines+strings.Count(text[:i], "\n"), 1+utf8.RuneCountInString(line), "byte 0x%02x: must be UTF-8 text without NUL", text[i])
		return nil
	}
	// The lexer counts a line twice that ends in a comment and "\r\n".
	tokens := lexer.Tokenize(strings.ReplaceAll(text, "\r\n", "\n"))
	for _, t := range tokens {
		t.Position.Line += lines
	}
	before := r.tokens
	if r.tokens += len(tokens); r.tokens > maxTokens {
		line, column := tokenPosition(tokens[maxTokens-before])
		r.failAt(line, column, "file: too large: must be at most %d words and marks%s", maxTokens, together(len(tokens), r.tokens))
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
	r.failAt(1+lines, 1, `file: not a mapping: must begin with "version: 1"`)
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
