package rules

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A source is the name and the contents of a rules file.
type source struct{ name, text string }

// joined returns the names and the contents of sources. The contents of each but the first are a YAML
// document of their own, with their name in a comment.
func joined(sources []source) (names string, text []byte) {
	for i, s := range sources {
		if i > 0 {
			names += ", "
			if !bytes.HasSuffix(text, []byte("\n")) {
				text = append(text, '\n')
			}
			text = fmt.Appendf(text, "--- # %s\n", strconv.Quote(s.name))
			s.text = strings.TrimPrefix(s.text, "\ufeff")
		}
		names += s.name
		text = append(text, s.text...)
	}
	return names, text
}

// A document is one YAML document of the rules files.
type document struct {
	file     string
	root     ast.Node
	sections map[string]ast.Node
}

// sections yields the section of that name of each document that has it, while r.file is its file.
func (r *reader) sections(name string) iter.Seq[ast.Node] {
	return func(yield func(ast.Node) bool) {
		for i := range r.docs {
			r.file = r.docs[i].file
			if n := r.docs[i].sections[name]; n != nil && !yield(n) {
				return
			}
		}
	}
}
