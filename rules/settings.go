package rules

import "github.com/goccy/go-yaml/ast"

// A Setting is one setting of a settings file, with its value as it was written:
// one text, or several if it was a list.
type Setting struct {
	Name         string
	Values       []string
	Line, Column int // of the value
}

// ParseSettings reads a file of settings, as a server has: YAML like a rules file,
// under the same restrictions, but only a mapping from names to texts or lists of
// texts. What is not among names is a mistake. The error is [Errors]; the caller
// validates the values and reports errors with [Setting.Error].
func ParseSettings(file string, data []byte, names []string) ([]Setting, error) {
	r := &reader{file: file}
	var settings []Setting
	err := r.parse(data, func(root ast.Node) {
		pairs, _ := r.pairs(root, "file", "a mapping of settings")
		for _, p := range pairs {
			if !r.checkKey(p, "file", names) {
				continue
			}
			s := Setting{Name: p.key, Values: all(r, p.value, p.key, parseText)}
			s.Line, s.Column = position(p.value)
			settings = append(settings, s)
		}
	})
	if err != nil {
		return nil, err
	}
	return settings, nil
}

// Error returns the error of file whose setting s is wrong.
func (s *Setting) Error(file, message string) *Error {
	return &Error{file, s.Line, s.Column, message}
}
