package rules

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/internal/spelling"
)

// A Setting is one setting of a settings file, with its unparsed value: one
// text, or several for a list.
type Setting struct {
	Name         string
	Values       []string
	Line, Column int // of the value
}

// ParseSettings parses a settings file of the server: YAML with the restrictions
// of a rules file, and only a mapping from names to texts or lists of texts. A
// name that is not in names is a mistake. The error is [Errors]; the caller
// validates the values and reports errors with [Setting.Error].
func ParseSettings(file string, data []byte, names []string) ([]Setting, error) {
	r := &reader{file: file}
	var settings []Setting
	err := r.parse(data, func(root ast.Node) {
		pairs, _ := r.pairs(root, "file", "a mapping of settings")
		for _, p := range pairs {
			if slices.ContainsFunc(fileKeys, func(k allowedKey) bool { return k.name == p.key }) {
				r.fail(p.at, "this looks like a rules file, since it has %q: give it with --rules, or name it in the settings file as \"rules: %s\"", p.key, file)
				return
			}
			if !slices.Contains(names, p.key) {
				r.unknownSetting(p, names)
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

// unknownSetting records that the key of p is no setting.
func (r *reader) unknownSetting(p pair, names []string) {
	if near := spelling.Nearest(p.key, names, slips); near != "" {
		r.fail(p.at, "unknown setting %q: did you mean %s?", rulevalue.Clip(p.key), near)
		return
	}
	r.fail(p.at, "unknown setting %q: must be one that lately serve --help lists, such as %s", rulevalue.Clip(p.key), names[0])
}

// Error returns an error with message at the position of s in file.
func (s *Setting) Error(file, message string) *Error {
	return &Error{file, s.Line, s.Column, message}
}
