package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// maxSize is the size of the largest rules file, in bytes.
const maxSize = 1 << 20

// A File is a rules file, checked and compiled. It holds no counts. A File is
// safe for concurrent use as long as it is not changed.
type File struct {
	// Name is the file's name as it was given.
	Name string

	// Text is the contents of the file.
	Text []byte

	// Fold makes the keys of clients in all rules.
	Fold match.Fold

	// Allow is the allow list.
	Allow Allow

	// Counters is what to count, in the order of the file.
	Counters []Counter

	// Limits is the rules of the sections limits and bans: first the limits,
	// then the bans, each in the order of the file, and the allow list. It is
	// never nil and has no rule when there is none.
	Limits *ratelimit.Set

	// Hot is the rules of the section hot, in the order of the file. It is
	// never nil and has no rule when there is none.
	Hot *hotkey.Set

	// Warnings is what is valid but probably not intended, in the order of the file.
	Warnings Errors

	names map[string]place // of limits and bans, and of others
	read  []version        // of the files of Allow
}

// A Counter counts events by Key, over each of Spans, for charts and top lists.
type Counter struct {
	Name      string
	Key       match.Key
	When      match.When
	Condition match.Condition // When, compiled
	Spans     []time.Duration // in the order of the file, no two alike
}

// Load reads, checks and compiles the rules file at path, which must be a regular file
// of at most 1 MiB, with the files of its allow list, whose paths are relative to the
// folder of the rules file. The error is [Errors] when one of them has mistakes, else that
// of reading the rules file.
func Load(path string) (*File, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	r := &reader{file: path, onDisk: true}
	return r.readWhole(data)
}

// readFile returns the contents of a rules file.
func readFile(path string) ([]byte, error) {
	data, err := fileperm.ReadFile(path, maxSize)
	if err != nil {
		return nil, fmt.Errorf("rules file: %w", err)
	}
	return data, nil
}

// Parse checks and compiles data as the rules file called name. The error is
// [Errors]. The File keeps data, which must not change. Time and memory are bounded
// for any data: a file made to be slow takes about a second.
//
// Parse reads no other file: files of the allow list are empty, with a warning.
func Parse(name string, data []byte) (*File, error) {
	r := &reader{file: name}
	return r.readWhole(data)
}

// Draft is Parse for data that may replace f: files of the allow list that f names, too,
// have the addresses that they have in f.
func (f *File) Draft(name string, data []byte) (*File, error) {
	r := &reader{file: name, allowFiles: f.Allow.Files}
	return r.readWhole(data)
}

// readWhole reads data as a rules file.
func (r *reader) readWhole(data []byte) (f *File, err error) {
	r.names = make(map[string]place)
	if err := r.parse(data, func(root ast.Node) { f = r.readFile(root) }); err != nil {
		return nil, err
	}
	f.Text, f.Warnings, f.names, f.read = data, r.warnings, r.names, r.read
	return f, nil
}

// RuleError returns the error that the rule of that name cannot be used, at the place of the
// name in the file.
func (f *File) RuleError(rule, message string) *Error {
	at := f.names[rule]
	return &Error{f.Name, at.line, at.column, fmt.Sprintf("rule %q: %s", rule, message)}
}

// Fields returns the names of all event fields that any rule or counter of the
// file looks at, sorted.
func (f *File) Fields() []string {
	names := append(f.Limits.Fields(), f.Hot.Fields()...)
	for i := range f.Counters {
		c := &f.Counters[i]
		names = append(names, c.Key.EventFields()...)
		names = append(names, c.Condition.Fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
