package rules

import "github.com/goccy/go-yaml/token"

const (
	maxDepth  = 16      // of mappings and lists in each other; a rules file needs 6
	maxKeys   = 1000    // in one mapping
	maxTokens = 100_000 // words and marks in the file; a rule has about 50
)

// A guard looks at the tokens of a file before they are parsed. It refuses what
// a rules file does not use, and what the parser is known not to survive: it
// recurses for each level (128 KiB of '[' exhaust the memory, which no program
// can recover from), and takes quadratic time in the keys of a mapping and in
// the values that are left out.
type guard struct {
	r       *reader
	content bool // something but comments and document marks was seen
	ended   bool // a second document would begin here

	flow   []int   // the keys so far in each open '{', or inList for an open '['
	blocks []block // the block mappings and lists that are open, outermost first
}

// inList stands for the keys of a list, which has none.
const inList = -1

// A block is a mapping or list by indentation: its column, and its keys so far.
type block struct{ column, keys int }

// refused is the tokens that a rules file has no use for.
var refused = map[token.Type]string{
	token.AnchorType:     "anchors (&name) are not taken; write the value where it is meant",
	token.AliasType:      "aliases (*name) are not taken; write the value where it is meant, and quote a pattern that begins with '*'",
	token.MergeKeyType:   "merge keys (<<) are not taken; write the keys where they are meant",
	token.TagType:        "tags (!name) are not taken; quote a value that begins with '!'",
	token.DirectiveType:  "directives (%NAME) are not taken; quote a value that begins with '%'",
	token.MappingKeyType: "keys with '?' are not taken; write \"key: value\"",
}

// admit reports whether the parser may see t.
func (g *guard) admit(t *token.Token) bool {
	line, column := tokenPosition(t)
	fail := func(message string) bool {
		g.r.failAt(line, column, "%s", message)
		return false
	}
	if t.Type == token.CommentType {
		return true
	}
	if why, ok := refused[t.Type]; ok {
		return fail(why)
	}
	switch t.Type {
	case token.DocumentHeaderType:
		g.ended = g.content
		return true
	case token.DocumentEndType:
		g.ended = true
		return true
	}
	if g.ended {
		return fail("a second document begins here; allowed is one document in a file")
	}
	g.content = true
	switch {
	case t.Type == token.MappingValueType && len(g.flow) > 0 && g.keys() == inList:
		// The lexer takes a ':' for a key's also within 2001:db8::1, in a list in '{'.
		return fail("a ':' in a list in brackets makes a key of what is before it; quote a value that has one, as in [\"2001:db8::1\"]")
	case !g.structure(t, column):
		return fail("the file is nested too deeply, or has a ']' or '}' too many")
	case g.keys() > maxKeys:
		return fail("a mapping has too many keys; allowed is at most 1000")
	}
	return true
}

// structure keeps flow and blocks in step with t, and reports whether that can
// be.
func (g *guard) structure(t *token.Token, column int) bool {
	switch t.Type {
	case token.SequenceStartType:
		g.flow = append(g.flow, inList)
	case token.MappingStartType:
		g.flow = append(g.flow, 0)
	case token.SequenceEndType, token.MappingEndType:
		if len(g.flow) == 0 {
			return false
		}
		g.flow = g.flow[:len(g.flow)-1]
	case token.SequenceEntryType:
		if len(g.flow) == 0 {
			g.open(column, 0)
		}
	case token.MappingValueType:
		switch {
		case len(g.flow) > 0:
			g.flow[len(g.flow)-1]++
		case t.Prev != nil:
			_, column = tokenPosition(t.Prev)
			g.open(column, 1)
		}
	}
	return len(g.flow)+len(g.blocks) <= maxDepth
}

// open closes the blocks to the right of column and counts keys in the one that
// is there. A list may stand in the same column as the key that it belongs to,
// so that an entry does not count as one of that mapping's keys.
func (g *guard) open(column, keys int) {
	for len(g.blocks) > 0 && g.blocks[len(g.blocks)-1].column > column {
		g.blocks = g.blocks[:len(g.blocks)-1]
	}
	if n := len(g.blocks); n > 0 && g.blocks[n-1].column == column {
		g.blocks[n-1].keys += keys
		return
	}
	g.blocks = append(g.blocks, block{column, keys})
}

// keys returns the number of keys so far in the innermost mapping.
func (g *guard) keys() int {
	if n := len(g.flow); n > 0 {
		return g.flow[n-1]
	}
	if n := len(g.blocks); n > 0 {
		return g.blocks[n-1].keys
	}
	return 0
}
