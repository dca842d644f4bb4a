package rules

import (
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// A Setting is one setting of a settings file, with its value as it was written:
// one text, or several if it was a list.
type Setting struct {
	Name         string
	Values       []string
	Line, Column int // of the value
}

// ParseSettings reads a file of settings, as a server has: YAML like a rules file,
// under the same restrictions, but only a mapping from names to texts or lists of
// texts. What is not among names is a mistake. The error is [Errors]; what a value
// must be is for the caller to say, with [Setting.Error].
func ParseSettings(file string, data []byte, names []string) ([]Setting, error) {
	r := &reader{file: file, names: make(map[string]int)}
	root := r.tree(data)
	var settings []Setting
	if len(r.errs) == 0 {
		settings = r.readSettings(root, names)
	}
	if len(r.errs) > 0 {
		r.errs.sort()
		return nil, r.errs
	}
	return settings, nil
}

func (r *reader) readSettings(root ast.Node, names []string) []Setting {
	pairs, ok := r.pairs(root, "the file", "a mapping of settings")
	if !ok {
		return nil
	}
	var settings []Setting
	for key, value := range pairs {
		if !slices.Contains(names, key.text) {
			r.unknown(key, "the file", names)
			continue
		}
		s := Setting{Name: key.text}
		s.Line, s.Column = position(value)
		for _, t := range r.scalars(value, key.text, "a text or a list of texts") {
			s.Values = append(s.Values, t.text)
		}
		settings = append(settings, s)
	}
	return settings
}

// Error returns the error of file whose setting s is wrong.
func (s *Setting) Error(file, message string) *Error {
	return &Error{file, s.Line, s.Column, message}
}

// Text returns the value of s for a message.
func (s *Setting) Text() string {
	if len(s.Values) == 1 {
		return strconv.Quote(clip(s.Values[0]))
	}
	return "a list of " + strconv.Itoa(len(s.Values))
}
