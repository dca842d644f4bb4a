package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is a mistake in a rules file, or a warning.
type Error struct {
	File    string // the name given to Parse or Load
	Line    int    // of the offending value, from 1
	Column  int    // in characters, from 1
	Message string // the value and what it must be
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are the mistakes in one file, in the order of their positions. An
// error of [Parse] or [Load] is never empty.
type Errors []*Error

// Error returns the mistakes, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes one by one.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}
