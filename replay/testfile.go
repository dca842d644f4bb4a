package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/rules"
)

// A testFile contains tests of a rules file: the outcomes of given events, and keys in
// given logs that must never be refused. Package replay runs them.
type testFile struct {
	Name  string     // of the file, as it was given
	Tests []testCase // in the order of the file
}

// A testCase is judged with rules that start at zero. It has Events or Logs.
type testCase struct {
	Name   string
	Line   int       // first line in the file
	Start  time.Time // the time from which At of events is counted
	Events []testEvent
	Logs   []string // files, relative to that of the tests
	Format string   // of Logs; "" is to detect it

	// Key is the field of the values in NeverRefuse; for clients, these may be
	// networks.
	Key         string
	NeverRefuse []string
}

// A testEvent is one event of a [Test], or several equal ones.
type testEvent struct {
	Line, Column int
	At           time.Duration // after Start
	Fields       map[string]string
	Repeat       int           // number of events, at least 1
	Every        time.Duration // from one to the next
	Expect       expectation
}

// An expectation is the required outcome of an event. The zero expectation accepts
// any outcome.
type expectation struct {
	Outcome string // "allowed", "refused" (also by a ban), "banned", or "" for any
	Rule    string // the rule that refuses it; "" means any
}

// String returns the expectation in the syntax of a test file.
func (e expectation) String() string {
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
	testFileKeys  = []string{"version: 1", "tests: [{name: one, events: [{at: 0s, event: {client: 192.0.2.1}, expect: allowed}]}]"}
	testKeys      = []string{"name: a client is refused", "start", "events", "logs", "format", "key", "never_refuse"}
	testEventKeys = []string{"at: 0s", "event: {client: 192.0.2.1}", "repeat", "expect"}
)

// parseTests parses data as the test file called name. Its expectations may name the rules of f. The error is [rules.Errors].
func parseTests(name string, data []byte, f *rules.File) (*testFile, error) {
	var errs rules.Errors
	r := &testReader{file: name, names: make(map[string]int)}
	r.Report = func(line, column int, _ bool, message string) {
		errs = append(errs, &rules.Error{File: name, Line: line, Column: column, Message: message})
	}
	for _, s := range f.Limits.Internal().Sources() {
		r.fields = append(r.fields, s.Field)
	}
	for _, rule := range f.Limits.Rules() {
		r.rules = append(r.rules, rule.Name)
	}
	out := &testFile{Name: name}
	if root := r.Tree(string(data), 0); root != nil {
		out.Tests = r.readTests(root)
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b *rules.Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
		return nil, errs
	}
	return out, nil
}

// A testReader reads one test file.
type testReader struct {
	yamlfile.Reader
	file   string
	fields []string       // declared in the rules file
	rules  []string       // names of the limits and bans
	names  map[string]int // the lines of the tests
}

func (r *testReader) readTests(root ast.Node) (tests []testCase) {
	m := r.Mapping(root, "file", testFileKeys)
	yamlfile.One(&r.Reader, m["version"], "version", yamlfile.OneOf("1"))
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
		r.Fail(n, "%s: %s: must be %s", what, yamlfile.Describe(n), must)
		return nil
	}
	return list.Values
}

func (r *testReader) readTest(n ast.Node) testCase {
	m := r.Mapping(n, "test", testKeys)
	t := testCase{Start: testStart, Key: "client"}
	t.Line, _ = yamlfile.Position(n)
	t.Name, _ = yamlfile.One(&r.Reader, m["name"], "name", parseTestName)
	if line, taken := r.names[t.Name]; taken && t.Name != "" {
		r.Fail(m["name"], "name: %q: must be unique among tests, and line %d has it", rulevalue.Clip(t.Name), line)
	}
	r.names[t.Name] = t.Line
	if m["start"] != nil {
		t.Start, _ = yamlfile.One(&r.Reader, m["start"], "start", parseStart)
	}
	events := 0
	for _, n := range r.list(m["events"], "events", `a list of events, such as "{at: 0s, event: {client: 192.0.2.1}, expect: allowed}"`) {
		e := r.readTestEvent(n)
		if events += e.Repeat; events > maxTestEvents {
			r.Fail(n, "events: too many: must be at most %d in a test", maxTestEvents)
			break
		}
		t.Events = append(t.Events, e)
	}
	t.Logs = yamlfile.All(&r.Reader, m["logs"], "logs", yamlfile.NonEmpty)
	t.Format, _ = yamlfile.One(&r.Reader, m["format"], "format", yamlfile.NonEmpty)
	if key, ok := yamlfile.One(&r.Reader, m["key"], "key", yamlfile.NonEmpty); ok && r.checkField(m["key"], "key", key) {
		t.Key = key
	}
	t.NeverRefuse = yamlfile.All(&r.Reader, m["never_refuse"], "never_refuse", yamlfile.NonEmpty)
	r.checkTest(n, m)
	return t
}

// checkTest records what is missing in a test of these values, or makes no sense.
func (r *testReader) checkTest(n ast.Node, m map[string]ast.Node) {
	switch {
	case m == nil:
	case (m["events"] == nil) == (m["logs"] == nil):
		r.Fail(n, "test: must have events or logs, one of them")
	case m["logs"] != nil && m["never_refuse"] == nil:
		r.Fail(n, "test: missing key never_refuse: must be given with logs, as in \"never_refuse: [192.0.2.1]\"")
	case m["format"] != nil && m["logs"] == nil:
		r.Fail(m["format"], "format: no effect without logs: must be left out")
	case m["start"] != nil && m["events"] == nil:
		r.Fail(m["start"], "start: no effect without events: must be left out")
	case m["key"] != nil && m["never_refuse"] == nil:
		r.Fail(m["key"], "key: no effect without never_refuse: must be left out")
	}
}

func (r *testReader) readTestEvent(n ast.Node) testEvent {
	m := r.Mapping(n, "event", testEventKeys)
	e := testEvent{Fields: make(map[string]string), Repeat: 1}
	e.Line, e.Column = yamlfile.Position(n)
	e.At, _ = yamlfile.One(&r.Reader, m["at"], "at", parseAt)
	pairs, _ := r.Pairs(m["event"], "event", "a mapping of fields and their values")
	for _, p := range pairs {
		if r.checkField(p.At, "event", p.Key) {
			e.Fields[p.Key], _ = yamlfile.One(&r.Reader, p.Value, p.Key, yamlfile.NonEmpty)
		}
	}
	if repeat, ok := yamlfile.One(&r.Reader, m["repeat"], "repeat", parseRepeat); ok {
		e.Repeat, e.Every = repeat.Repeat, repeat.Every
	}
	e.Expect, _ = yamlfile.One(&r.Reader, m["expect"], "expect", r.parseExpectation)
	return e
}

// checkField reports a mistake, and returns false, if name, which stands at n, is not a field that rules can use.
func (r *testReader) checkField(n ast.Node, what, name string) bool {
	err := rulevalue.CheckField(name, r.fields)
	if err != nil {
		r.Fail(n, "%s: %v", what, err)
	}
	return err == nil
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
func parseRepeat(s string) (e testEvent, err error) {
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
func (r *testReader) parseExpectation(s string) (e expectation, err error) {
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
