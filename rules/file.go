package rules

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/fileperm"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// maxSize is the size of the largest rules file, in bytes.
const maxSize = 1 << 20

// A File is a rules file, or several that are one set of rules, checked and compiled. It
// holds no counts. A File is safe for concurrent use as long as it is not changed.
type File struct {
	// Name is the file's name as it was given. Several have a comma between them.
	Name string

	// Text is the contents of the file. Several are the documents of one YAML text, which
	// Parse reads.
	Text []byte

	// Fold makes the keys of clients in all rules.
	Fold match.Fold

	// Allow is the allow list.
	Allow Allow

	// Counters is what to count, in the order of the files.
	Counters []Counter

	// Limits is the rules of the sections limits and bans: first the limits,
	// then the bans, each in the order of the files, and the allow list. It is
	// never nil and has no rule when there is none.
	Limits *ratelimit.Set

	// Hot is the rules of the section hot, in the order of the files. It is
	// never nil and has no rule when there is none.
	Hot *hotkey.Set

	// Warnings is what is valid but probably not intended, in the order of the file.
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

// Load reads, checks and compiles the rules files at paths, which must be regular files
// of at most 1 MiB together, with the files of their allow lists and plans, whose paths are relative to the
// folder of the rules file that names them. Several files are one set of rules: their sections
// are joined, in the order of the paths, names are unique among all of them, and the section client, if
// several have it, must be the same. The error is [Errors] when one of them has mistakes, else that
// of reading the rules files.
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
		data, err := readFile(path)
		sources[i], errs[i] = source{path, string(data)}, err
	}
	return sources, errors.Join(errs...)
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
// [Errors]. Time and memory are bounded for any data: a file made to be slow takes about
// a second. A file may have several YAML documents, which are read as Load reads several files.
//
// Parse reads no other file: files of the allow list and of plans are empty, with a warning.
func Parse(name string, data []byte) (*File, error) {
	return new(reader).readWhole([]source{{name, string(data)}})
}

// Draft is Parse for data that may replace f: files of the allow list and of plans that f
// names, too, have the contents that they have in f.
func (f *File) Draft(name string, data []byte) (*File, error) {
	return (&reader{allowFiles: f.Allow.Files, plansBefore: f.plans}).readWhole([]source{{name, string(data)}})
}

// readWhole reads sources as one set of rules.
func (r *reader) readWhole(sources []source) (f *File, err error) {
	r.names, r.fieldsAt = make(map[string]place), make(map[string]place)
	for _, s := range sources {
		r.file = s.name
		for lines, text := range documents(s.text) {
			r.docs = append(r.docs, document{file: s.name, root: r.tree(text, lines)})
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

// RuleError returns the error that the rule of that name cannot be used, at the place of the
// name in the file.
func (f *File) RuleError(rule, message string) *Error {
	at := f.names[rule]
	return &Error{at.file, at.line, at.column, fmt.Sprintf("rule %q: %s", rule, message)}
}

// Fields returns the names of all event fields that any rule or counter of the
// file looks at, sorted.
func (f *File) Fields() []string {
	names := append(f.Limits.Fields(), f.Hot.Fields()...)
	for i := range f.Counters {
		c := &f.Counters[i]
		names = append(names, keyvalue.Fields(c.Key)...)
		names = append(names, c.Condition.Fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
