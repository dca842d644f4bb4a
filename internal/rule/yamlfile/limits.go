package yamlfile

import "github.com/goccy/go-yaml/token"

const (
	// MaxSize is the size of the largest file, in bytes.
	MaxSize = 1 << 20

	maxDepth  = 16      // of mappings and lists in each other; a rules file needs 6
	MaxKeys   = 1000    // in one mapping
	MaxTokens = 100_000 // words and marks in the file; a rule has about 50
)

// limits checks the tokens of a file before they are parsed. It rejects what a rules
// file does not use, and what the parser cannot handle safely: the parser recurses for
// each level (128 KiB of '[' exhaust the memory, from which no program recovers), and
// takes quadratic time in the keys of a mapping and in the values that are left out.
type limits struct {
	r       *Reader
	content bool // something but comments and document marks was seen
	ended   bool // a second document would begin here

	open []level // the mappings and lists that are open, outermost first
}

// A level is a mapping or list: the column of one by indentation, or inBrackets, and its
// keys so far, or inList for a list in brackets.
type level struct{ column, keys int }

const (
	inBrackets = 0
	inList     = -1
)

// rejected has the tokens that a rules file must not use.
var rejected = map[token.Type]string{
	token.AnchorType:     "anchors (&name): not supported: write the value where it is meant",
	token.AliasType:      "aliases (*name): not supported: write the value where it is meant, and quote a pattern that begins with '*'",
	token.MergeKeyType:   "merge keys (<<): not supported: write the keys where they are meant",
	token.TagType:        "tags (!name): not supported: quote a value that begins with '!'",
	token.DirectiveType:  "directives (%NAME): not supported: quote a value that begins with '%'",
	token.MappingKeyType: "keys with '?': not supported: write \"key: value\"",
}

// allow reports whether the parser may have t. If not, it records why.
func (l *limits) allow(t *token.Token) bool {
	line, column := tokenPosition(t)
	fail := func(message string) bool {
		l.r.FailAt(line, column, "%s", message)
		return false
	}
	if t.Type == token.CommentType {
		return true
	}
	if why, ok := rejected[t.Type]; ok {
		return fail(why)
	}
	switch t.Type {
	case token.DocumentHeaderType:
		l.ended = l.content
		return true
	case token.DocumentEndType:
		l.ended = true
		return true
	}
	if l.ended {
		return fail("second document: must be one document in a file")
	}
	l.content = true
	switch {
	case t.Type == token.MappingValueType && l.top().keys == inList:
		// The lexer takes a ':' for a key's also within 2001:db8::1, in a list in '{'.
		return fail("list in brackets: a ':' makes a key of the word before it: values with ':' must be quoted, as in [\"2001:db8::1\"]")
	case !l.structure(t, column):
		return fail("file: nested too deeply, or with a ']' or '}' too many: must be at most 16 levels")
	case l.top().keys > MaxKeys:
		return fail("mapping: too many keys: must be at most 1000")
	}
	return true
}

// structure updates the open levels for t, and reports whether t is allowed.
func (l *limits) structure(t *token.Token, column int) bool {
	bracketed := len(l.open) > 0 && l.top().column == inBrackets
	switch t.Type {
	case token.SequenceStartType:
		l.open = append(l.open, level{inBrackets, inList})
	case token.MappingStartType:
		l.open = append(l.open, level{inBrackets, 0})
	case token.SequenceEndType, token.MappingEndType:
		if !bracketed {
			return false
		}
		l.open = l.open[:len(l.open)-1]
	case token.SequenceEntryType:
		if !bracketed {
			l.block(column, 0)
		}
	case token.MappingValueType:
		switch {
		case bracketed:
			l.top().keys++
		case t.Prev != nil:
			_, column = tokenPosition(t.Prev)
			l.block(column, 1)
		}
	}
	return len(l.open) <= maxDepth
}

// block closes the levels to the right of column and counts keys in the level at
// column. A list may be in the same column as its key, so an entry does not
// count as a key of that mapping.
func (l *limits) block(column, keys int) {
	for len(l.open) > 0 && l.top().column > column {
		l.open = l.open[:len(l.open)-1]
	}
	if len(l.open) == 0 || l.top().column != column {
		l.open = append(l.open, level{column, 0})
	}
	l.top().keys += keys
}

// top returns the innermost level.
func (l *limits) top() *level {
	if len(l.open) == 0 {
		return new(level)
	}
	return &l.open[len(l.open)-1]
}
