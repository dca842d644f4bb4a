// Package invalid has the error of rules with invalid fields. It names each field, so that package rules can report
// it at its place in a file.
package invalid

import (
	"fmt"
	"strings"
	"time"
)

// A Field is a field of a rule whose value is invalid.
type Field struct {
	Rule     int    // the index of the rule
	RuleName string // "" if it has none

	// Name is the name of the field in a rules file, after the name of the field that contains it,
	// with an index if it is one of several values: "limit", "ban.max", "adapt.steps[1]".
	Name string

	Value string // Missing, or "" if it is valid by itself but not beside the others
	Must  string // what is allowed, "must be 1 or more"
}

// Missing stands for the value of a field that is not set.
const Missing = "missing"

// Error returns the rule and the message.
func (f *Field) Error() string {
	return fmt.Sprintf("rule %d (%q): %s", f.Rule+1, f.RuleName, f.Message())
}

// Message returns the field, its value and what it must be.
func (f *Field) Message() string {
	if f.Value == "" {
		return f.Name + ": " + f.Must
	}
	return f.Name + ": " + f.Value + ": " + f.Must
}

// Fields is invalid fields as an error.
type Fields []*Field

// Check adds a field unless it is valid. A value of nil is left out of its message. must is a
// format for the other arguments.
func (fs *Fields) Check(valid bool, name string, value any, must string, args ...any) {
	if valid {
		return
	}
	for i := range args {
		args[i] = short(args[i])
	}
	f := &Field{Name: name, Must: fmt.Sprintf(must, args...)}
	if value != nil {
		f.Value = fmt.Sprint(short(value))
	}
	*fs = append(*fs, f)
}

// short returns a duration as Duration does, and any other value as it is.
func short(v any) any {
	if d, ok := v.(time.Duration); ok {
		return Duration(d)
	}
	return v
}

// Duration returns d in its shortest form, 10m instead of 10m0s.
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// CheckNil adds a field whose value err rejects, unless that is nil.
func (fs *Fields) CheckNil(err error, name string) {
	if err != nil {
		*fs = append(*fs, &Field{Name: name, Must: err.Error()})
	}
}

// Error returns the errors of the fields, one a line.
func (fs Fields) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Of sets the index and the name of the rule in all fields, and returns fs.
func (fs Fields) Of(index int, name string) Fields {
	for _, f := range fs {
		f.Rule, f.RuleName = index, name
	}
	return fs
}
