package rules

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
)

// A reader reads files as one and collects their mistakes.
type reader struct {
	yamlfile.Reader
	file     string     // that is being read
	docs     []document // of all files
	errs     Errors
	warnings Errors
	names    map[string]place // of rules and counters
	fold     match.Fold       // of all keys
	fields   []match.Source   // of the section fields
	fieldsAt map[string]place
	declared []string // the names of these fields, also of those with a mistake

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

// placeOf returns the place of n in the file that is read.
func (r *reader) placeOf(n ast.Node) place {
	line, column := yamlfile.Position(n)
	return place{r.file, line, column}
}

// mistakes sorts warnings and errors, and returns the errors.
func (r *reader) mistakes() error {
	r.warnings.sort()
	if r.errs.sort(); len(r.errs) > 0 {
		return r.errs
	}
	return nil
}

// report records a mistake or a warning in the file that is read.
func (r *reader) report(line, column int, warning bool, message string) {
	e := &Error{r.file, line, column, message}
	if warning {
		r.warnings = append(r.warnings, e)
	} else {
		r.errs = append(r.errs, e)
	}
}

// section returns the rules in the section n, called what in messages. It may be
// absent or empty.
func (r *reader) section(n ast.Node, what string) []ast.Node {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.SequenceNode:
		return n.Values
	}
	r.Fail(n, "%s: %s: must be a list of rules, each beginning with \"- name:\"", what, yamlfile.Describe(n))
	return nil
}

// readName reads the name of a rule or counter, which no other has.
func (r *reader) readName(n ast.Node) string {
	name, ok := yamlfile.One(&r.Reader, n, "name", rulevalue.Name)
	if !ok {
		return ""
	}
	if at, taken := r.names[name]; taken {
		r.Fail(n, "name: %q: must be unique among rules and counters, and %s has it", name, at.from(r.file))
		delete(r.Places, "name")
		return name
	}
	r.names[name] = r.placeOf(n)
	return name
}
