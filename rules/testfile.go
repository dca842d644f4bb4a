package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/lately-go/lately/internal/rulevalue"
)

// A TestFile contains tests of a rules file: the outcomes of given events, and keys in
// given logs that must never be refused. Package replay runs them.
type TestFile struct {
	Name     string // of the file, as it was given
	Tests    []Test // in the order of the file
	Warnings Errors // about values that are valid but probably not intended
}

// A Test is judged with rules that start at zero. It has Events or Logs.
type Test struct {
	Name   string
	Line   int       // first line in the file
	Start  time.Time // the time from which At of events is counted
	Events []TestEvent
	Logs   []string // files, relative to that of the tests
	Format string   // of Logs; "" is to detect it

	// Key is the field of the values in NeverRefuse; for clients, these may be
	// networks.
	Key         string
	NeverRefuse []string
}

// A TestEvent is one event of a [Test], or several equal ones.
type TestEvent struct {
	Line, Column int
	At           time.Duration // after Start
	Fields       map[string]string
	Repeat       int           // number of events, at least 1
	Every        time.Duration // from one to the next
	Expect       Expectation
}

// An Expectation is the required outcome of an event. The zero Expectation accepts
// any outcome.
type Expectation struct {
	Outcome string // "allowed", "refused" (also by a ban), "banned", or "" for any
	Rule    string // the rule that refuses it; "" means any
}

// String returns the expectation in the syntax of a test file.
func (e Expectation) String() string {
	if e.Rule != "" {
		return e.Outcome + " by " + e.Rule
	}
	return e.Outcome
}

// maxTestEvents is the largest number of events in one Test.
const maxTestEvents = 1_000_000

// testStart is the default start time of tests, a Monday.
var testStart = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	testFileKeys  = []allowedKey{{"version", "1"}, {"tests", "[{name: one, events: [{at: 0s, event: {client: 192.0.2.1}, expect: allowed}]}]"}}
	testKeys      = []allowedKey{{"name", "a client is refused"}, {"start", ""}, {"events", ""}, {"logs", ""}, {"format", ""}, {"key", ""}, {"never_refuse", ""}}
	testEventKeys = []allowedKey{{"at", "0s"}, {"event", "{client: 192.0.2.1}"}, {"repeat", ""}, {"expect", ""}}
)

// LoadTests reads the test file at path. Its expectations may name the rules of f. The
// error is [Errors] if the file has mistakes, or else the error of reading it.
func LoadTests(path string, f *File) (*TestFile, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("tests: %w", errors.Unwrap(err))
	}
	return ParseTests(path, data, f)
}

// ParseTests parses data as the test file called name, like LoadTests.
func ParseTests(name string, data []byte, f *File) (*TestFile, error) {
	r := &testReader{reader: &reader{file: name, names: make(map[string]place), fieldsAt: make(map[string]place)}}
	for _, s := range f.Limits.Sources() {
		r.addField(nil, s)
	}
	for i := range f.Limits.Len() {
		r.rules = append(r.rules, f.Limits.Rule(i).Name)
	}
	out := &TestFile{Name: name}
	if err := r.parse(data, func(root ast.Node) { out.Tests = r.readTests(root) }); err != nil {
		return nil, err
	}
	out.Warnings = r.warnings
	return out, nil
}

// A testReader reads one test file.
type testReader struct {
	*reader
	rules []string // names of the limits and bans
}

func (r *testReader) readTests(root ast.Node) (tests []Test) {
	m := r.mapping(root, "file", testFileKeys)
	one(r.reader, m["version"], "version", oneOf("1"))
	for _, n := range r.list(m["tests"], "tests", `a list of tests, each beginning with "- name:"`) {
		tests = append(tests, r.readTest(n))
	}
	return tests
}

// list returns the elements of n, a list called what in messages.
func (r *testReader) list(n ast.Node, what, must string) []ast.Node {
	if n == nil {
		return nil
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.fail(n, "%s: %s: must be %s", what, describe(n), must)
		return nil
	}
	return list.Values
}

func (r *testReader) readTest(n ast.Node) Test {
	m := r.mapping(n, "test", testKeys)
	t := Test{Start: testStart, Key: "client"}
	t.Line, _ = position(n)
	t.Name, _ = one(r.reader, m["name"], "name", parseTestName)
	if at, taken := r.names[t.Name]; taken && t.Name != "" {
		r.fail(m["name"], "name: %q: must be unique among tests, and %s has it", rulevalue.Clip(t.Name), at.from(r.file))
	}
	r.names[t.Name] = place{file: r.file, line: t.Line}
	if m["start"] != nil {
		t.Start, _ = one(r.reader, m["start"], "start", parseStart)
	}
	events := 0
	for _, n := range r.list(m["events"], "events", `a list of events, such as "{at: 0s, event: {client: 192.0.2.1}, expect: allowed}"`) {
		e := r.readTestEvent(n)
		if events += e.Repeat; events > maxTestEvents {
			r.fail(n, "events: too many: must be at most %d in a test", maxTestEvents)
			break
		}
		t.Events = append(t.Events, e)
	}
	t.Logs = all(r.reader, m["logs"], "logs", parseText)
	t.Format, _ = one(r.reader, m["format"], "format", parseText)
	if key, ok := one(r.reader, m["key"], "key", parseText); ok && r.checkField(m["key"], "key", key) {
		t.Key = key
	}
	t.NeverRefuse = all(r.reader, m["never_refuse"], "never_refuse", parseText)
	r.checkTest(n, m)
	return t
}

// checkTest records what is missing in a test of these values, or makes no sense.
func (r *testReader) checkTest(n ast.Node, m map[string]ast.Node) {
	switch {
	case m == nil:
	case (m["events"] == nil) == (m["logs"] == nil):
		r.fail(n, "test: must have events or logs, one of them")
	case m["logs"] != nil && m["never_refuse"] == nil:
		r.fail(n, "test: missing key never_refuse: must be given with logs, as in \"never_refuse: [192.0.2.1]\"")
	case m["format"] != nil && m["logs"] == nil:
		r.fail(m["format"], "format: no effect without logs: must be left out")
	case m["start"] != nil && m["events"] == nil:
		r.fail(m["start"], "start: no effect without events: must be left out")
	case m["key"] != nil && m["never_refuse"] == nil:
		r.fail(m["key"], "key: no effect without never_refuse: must be left out")
	}
}

func (r *testReader) readTestEvent(n ast.Node) TestEvent {
	m := r.mapping(n, "event", testEventKeys)
	e := TestEvent{Fields: make(map[string]string), Repeat: 1}
	e.Line, e.Column = position(n)
	e.At, _ = one(r.reader, m["at"], "at", parseAt)
	pairs, _ := r.pairs(m["event"], "event", "a mapping of fields and their values")
	for _, p := range pairs {
		if r.checkField(p.at, "event", p.key) {
			e.Fields[p.key], _ = one(r.reader, p.value, p.key, parseText)
		}
	}
	if repeat, ok := one(r.reader, m["repeat"], "repeat", parseRepeat); ok {
		e.Repeat, e.Every = repeat.Repeat, repeat.Every
	}
	e.Expect, _ = one(r.reader, m["expect"], "expect", r.parseExpectation)
	return e
}

func parseTestName(s string) (string, error) {
	const most = 200
	if s == "" || len(s) > most {
		return "", fmt.Errorf("must be a text of at most %d bytes", most)
	}
	return s, nil
}

func parseStart(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return time.Time{}, errors.New("must be a time from 1970 to 2100, such as 2026-03-02T13:55:00Z")
	}
	return t, nil
}

// parseAt parses a duration that may be 0.
func parseAt(s string) (time.Duration, error) {
	switch strings.TrimPrefix(s, "0") {
	case s:
	case "", "ms", "s", "m", "h", "d", "w":
		return 0, nil
	}
	return rulevalue.Duration(s)
}

// parseRepeat parses "60" and "60 every 100ms".
func parseRepeat(s string) (e TestEvent, err error) {
	number, every, ok := strings.Cut(s, " every ")
	if ok {
		if e.Every, err = rulevalue.Duration(every); err != nil {
			return e, err
		}
	}
	if e.Repeat, err = strconv.Atoi(number); err != nil || e.Repeat < 1 || e.Repeat > maxTestEvents {
		return e, fmt.Errorf("must be a number from 1 to %d, such as \"60\" or \"60 every 100ms\"", maxTestEvents)
	}
	return e, nil
}

// parseExpectation parses "allowed", "refused", "banned", "refused by NAME" and "banned by
// NAME".
func (r *testReader) parseExpectation(s string) (e Expectation, err error) {
	var by bool
	e.Outcome, e.Rule, by = strings.Cut(s, " by ")
	if e.Outcome != "refused" && e.Outcome != "banned" && (by || e.Outcome != "allowed") {
		return e, errors.New(`must be "allowed", "refused" or "banned", or with the rule that decides, "refused by NAME"`)
	}
	if by && !slices.Contains(r.rules, e.Rule) {
		return e, fmt.Errorf("no rule is named %q: must be the name of a limit or ban", rulevalue.Clip(e.Rule))
	}
	return e, nil
}
