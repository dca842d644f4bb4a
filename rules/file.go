package rules

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A File is a valid and compiled rules file, or several that form one rule set. It holds
// no counts. A File is safe for concurrent use as long as it is not changed.
type File struct {
	// Name is the file's name as given, or several joined by commas.
	Name string

	// Text is the contents of the file. Several files are the documents of one YAML text,
	// which [Parse] reads.
	Text []byte

	// Fold makes the keys of clients in all rules.
	Fold match.Fold

	// Allow is the allow list.
	Allow Allow

	// Counters are the counters, in the order of the files.
	Counters []Counter

	// Limits has the rules of the sections limits and bans, first the limits,
	// then the bans, each in the order of the files, and the allow list. It is
	// never nil, but may be empty.
	Limits *ratelimit.Set

	// Hot has the rules of the section hot, in the order of the files. It is
	// never nil, but may be empty.
	Hot []hotkey.Rule

	// Warnings are about values that are valid but probably not intended, in the
	// order of the file.
	Warnings Errors

	sources []source
	names   map[string]place // of limits and bans, and of others
	read    []version        // of the files of Allow, and of those of plans
	plans   []*planTable
}

// A Counter counts events by Key, over each of Spans, for charts and top lists.
type Counter struct {
	Name      string
	Key       match.Key
	When      match.When
	Condition match.Condition // When, compiled
	Spans     []time.Duration // in the order of the file, no two alike
}

// Load reads, validates and compiles the rules files at paths: regular files of at most
// 1 MiB together. It also reads the files of their allow lists and plans, whose paths
// are relative to the directory of the rules file that names them. Several files form
// one rule set: their sections are joined in the order of the paths, names must be
// unique among all, and the section client must be the same in all files that have it.
// The error is [Errors] if a file has mistakes, or else the error of reading the files.
func Load(paths ...string) (*File, error) {
	sources, err := readFiles(paths)
	if err != nil {
		return nil, err
	}
	return (&reader{onDisk: true}).readWhole(sources)
}

// readFiles reads rules files.
func readFiles(paths []string) ([]source, error) {
	if len(paths) == 0 {
		return nil, errors.New("rules files: none: must be at least one")
	}
	sources, errs := make([]source, len(paths)), make([]error, len(paths))
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			errs[i] = fmt.Errorf("rules files: %s twice: must be given once", path)
			continue
		}
		data, err := fileperm.ReadFile(path, yamlfile.MaxSize)
		if err != nil {
			errs[i] = fmt.Errorf("rules file: %w", err)
		}
		sources[i] = source{path, string(data)}
	}
	return sources, errors.Join(errs...)
}

// Parse validates and compiles data as the rules file called name. The error is
// [Errors]. Time and memory are bounded for any data: the slowest file takes
// about a second. Several YAML documents in data are joined like several files
// of [Load].
//
// Parse does not read other files: files of the allow list and of plans are empty, with a
// warning.
func Parse(name string, data []byte) (*File, error) {
	return new(reader).readWhole([]source{{name, string(data)}})
}

// Draft is [Parse] for data that may replace f: files of the allow list and of plans that
// f also names keep their contents from f. No file is read: a name that f does not have is a warning.
func (f *File) Draft(name string, data []byte) (*File, error) {
	return (&reader{allowFiles: f.Allow.Files, plansBefore: f.plans}).readWhole([]source{{name, string(data)}})
}

// readWhole reads sources as one set of rules.
func (r *reader) readWhole(sources []source) (f *File, err error) {
	r.Report = r.report
	r.names, r.fieldsAt = make(map[string]place), make(map[string]place)
	for _, s := range sources {
		r.file = s.name
		for lines, text := range yamlfile.Documents(s.text) {
			r.docs = append(r.docs, document{file: s.name, root: r.Tree(text, lines)})
		}
	}
	if len(r.errs) == 0 {
		f = r.readDocuments()
	}
	if err := r.mistakes(); err != nil {
		return nil, err
	}
	f.Name, f.Text = joined(sources)
	f.Warnings, f.sources, f.names, f.read = r.warnings, sources, r.names, r.read
	f.plans = r.plans
	return f, nil
}

// RuleError returns an error with message at the position of the rule's name in the file.
func (f *File) RuleError(rule, message string) *Error {
	at := f.names[rule]
	return &Error{at.file, at.line, at.column, fmt.Sprintf("rule %q: %s", rule, message)}
}

// Fields returns the names of all event fields that a rule or counter of the
// file uses, sorted.
func (f *File) Fields() []string {
	names := f.Limits.Internal().Fields()
	for i := range f.Hot {
		names = append(names, f.Hot[i].Fields()...)
	}
	for i := range f.Counters {
		c := &f.Counters[i]
		names = append(names, keyvalue.Fields(c.Key)...)
		names = append(names, when.Fields(&c.When)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
