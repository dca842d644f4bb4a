package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A TestReport has the results of the tests of a rules file. Its JSON is the report
// of lately test --json.
type TestReport struct {
	Rules  string       `json:"rules"` // names of the files
	File   string       `json:"file"`
	Failed int          `json:"failed"` // tests
	Tests  []TestResult `json:"tests"`
}

// A TestResult is the result of one test.
type TestResult struct {
	Name   string `json:"name"`
	Line   int    `json:"line"`
	Events int64  `json:"events"`

	// Failures has a sentence for each line that failed, at most 20; none if the test
	// passed.
	Failures        []string `json:"failures,omitempty"`
	FailuresLeftOut int      `json:"failures_left_out,omitempty"`
}

const maxFailures = 20

// Test judges the events and logs of each test in the file at path under f, as [Run] does, and reports which
// expectations do not hold. locate is as in [Config]. The error is [rules.Errors] if the file has mistakes, or else
// that of reading it, or from ctx.
func Test(ctx context.Context, f *rules.File, path string, locate func(*match.Event)) (*TestReport, error) {
	data, err := fileperm.ReadFile(path, yamlfile.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("tests: %w", err)
	}
	return testText(ctx, f, path, data, locate)
}

// testText is Test of data, the contents of the file called name.
func testText(ctx context.Context, f *rules.File, name string, data []byte, locate func(*match.Event)) (*TestReport, error) {
	tests, err := parseTests(name, data, f)
	if err != nil {
		return nil, err
	}
	report := &TestReport{Rules: f.Name, File: tests.Name, Tests: []TestResult{}}
	for i := range tests.Tests {
		x := &ruleTest{file: tests.Name, test: &tests.Tests[i], rules: f, locate: locate}
		x.out.Name, x.out.Line = x.test.Name, x.test.Line
		if err := x.begin(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			for sentence := range strings.Lines(err.Error()) {
				x.fail("%s:%d: %s", tests.Name, x.test.Line, strings.TrimSpace(sentence))
			}
		}
		if len(x.out.Failures) > 0 {
			report.Failed++
		}
		report.Tests = append(report.Tests, x.out)
	}
	return report, nil
}

// A ruleTest is the state of one test.
type ruleTest struct {
	file   string
	test   *testCase
	rules  *rules.File
	locate func(*match.Event)
	out    TestResult

	*events
	from    []*testEvent // of each event of a test without logs
	failed  map[*testEvent]bool
	never   *keyList
	refused map[uint32]*refusals
}

// refusals is what happened to a key that must never be refused.
type refusals struct {
	count int64
	first int
	rule  string
}

func (x *ruleTest) fail(format string, args ...any) {
	if len(x.out.Failures) == maxFailures {
		x.out.FailuresLeftOut++
		return
	}
	x.out.Failures = append(x.out.Failures, fmt.Sprintf(format, args...))
}

func (x *ruleTest) begin(ctx context.Context) error {
	x.failed, x.refused = make(map[*testEvent]bool), make(map[uint32]*refusals)
	x.never = newKeyList(x.test.Key, x.test.NeverRefuse)
	c := Config{Key: x.test.Key, Format: x.test.Format, Locate: x.locate}
	for _, log := range x.test.Logs {
		if !filepath.IsAbs(log) {
			log = filepath.Join(filepath.Dir(x.file), log)
		}
		c.Files = append(c.Files, log)
	}
	if len(c.Files) == 0 {
		c.Key, c.Events = "", x.ownEvents() // whose fields need not be those of a format
	}
	r, err := newRun(c, x.rules)
	if err != nil {
		return err
	}
	if r.Key = x.test.Key; c.Key == "" {
		if r.key, err = rulevalue.ParseKey(match.Fold{Off: true}, r.Key); err != nil {
			return err
		}
	}
	r.fields = r.usedFields()
	r.positions, r.rulesets[0].trace = len(c.Files) > 0, x.check
	if x.events, err = r.load(ctx); err != nil {
		return err
	}
	if c.Events != nil && x.report.Bad > 0 {
		return fmt.Errorf("%s are not of a year from %d to %d", plural(int(x.report.Bad), "event", "events"), firstYear, lastYear)
	}
	for _, problem := range x.report.Problems {
		x.fail("%s:%d: %s", x.file, x.test.Line, problem)
	}
	x.out.Events = int64(len(x.times))
	if err := x.judgeAll(ctx); err != nil {
		return err
	}
	x.reportRefused()
	return nil
}

// ownEvents returns the events of a test without logs, in the order of their times.
func (x *ruleTest) ownEvents() iter.Seq[*match.Event] {
	type event struct {
		at   time.Duration
		from *testEvent
	}
	var all []event
	for i := range x.test.Events {
		e := &x.test.Events[i]
		at := e.At
		for range e.Repeat {
			all = append(all, event{at, e})
			at = min(at, math.MaxInt64-e.Every) + e.Every // no year that is judged has a later time
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range all {
		x.from = append(x.from, e.from)
	}
	return func(yield func(*match.Event) bool) {
		var ev match.Event
		for _, e := range all {
			ev.Reset()
			ev.Time = x.test.Start.Add(e.at)
			for name, value := range e.from.Fields {
				ev.SetNamedString(name, value)
			}
			if x.rules.Limits.Internal().CountsAnswers() && !eventfield.HasAnswer(&ev) {
				ev.Part = match.Request // as of a server that is asked about it
			}
			if !yield(&ev) {
				return
			}
		}
	}
}

// check is called for each event in the order of judging.
func (x *ruleTest) check(event int, d ratelimit.Decision, _ []ratelimit.Outcome) {
	keys := x.top.keys
	id := keys.ids[event]
	if x.from != nil {
		x.expect(event, d)
	}
	if d.Allowed || id == 0 || !x.never.has(keys.texts[id]) {
		return
	}
	r := x.refused[id]
	if r == nil {
		r = &refusals{first: event, rule: d.Rule}
		x.refused[id] = r
	}
	r.count++
}

// expect compares a decision with what the test expects. Of events alike only the first
// that fails is reported.
func (x *ruleTest) expect(event int, d ratelimit.Decision) {
	e := x.from[event]
	was := expectation{Outcome: "allowed"}
	if !d.Allowed {
		was = expectation{Outcome: "refused", Rule: d.Rule}
		if !d.BannedUntil.IsZero() {
			was.Outcome = "banned"
		}
	}
	want := e.Expect
	ok := want.Outcome == "" || want.Outcome == was.Outcome || want.Outcome == "refused" && was.Outcome == "banned"
	if ok && (want.Rule == "" || want.Rule == was.Rule) || x.failed[e] {
		return
	}
	x.failed[e] = true
	x.fail("%s:%d:%d: event %s at %s: must be %s, was %s", x.file, e.Line, e.Column, fieldsText(e.Fields),
		rulevalue.FormatDuration(time.Duration(x.times[event]-x.test.Start.UnixNano())), want, was)
}

// fieldsText returns the fields of an event in the order of their names.
func fieldsText(fields map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, name+"="+fields[name])
	}
	return strings.Join(parts, " ")
}

// reportRefused reports keys that must never be refused but were, and those that no event
// has: a test of these cannot fail.
func (x *ruleTest) reportRefused() {
	values := x.top.keys.texts
	for _, id := range slices.Sorted(maps.Keys(x.refused)) {
		r := x.refused[id]
		where := exactStamp(epoch(x.times[r.first]), time.UTC) + " UTC"
		if x.places != nil {
			p := x.places[r.first]
			where = fmt.Sprintf("%s:%d", x.run.Files[p.file()], p.line())
		}
		x.fail("%s:%d: never_refuse: %s is refused %s, first by %s at %s", x.file, x.test.Line, values[id], timesText(r.count), r.rule, where)
	}
	for _, v := range x.test.NeverRefuse {
		list := newKeyList(x.test.Key, []string{v})
		if !slices.ContainsFunc(values[1:], list.has) {
			x.fail("%s:%d: never_refuse: no event of %s: must be a %s of the events", x.file, x.test.Line, v, x.test.Key)
		}
	}
}

func timesText(n int64) string {
	if n == 1 {
		return "once"
	}
	return count(n) + " times"
}
