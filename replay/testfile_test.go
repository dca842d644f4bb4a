package replay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

const parsedRules = `version: 1
fields: {session: {cookie: sid}}
limits:
  - {name: per-client, key: client, limit: 2 per 1m}
bans:
  - {name: flood, key: client, after: 9 hits in 1m, for: 1h}
hot:
  - {name: page, key: path, threshold: 5 per 2s}
`

func testedFile(t testing.TB) *rules.File {
	t.Helper()
	f := must.Get(rules.Parse("rules.yaml", []byte(parsedRules)))(t)
	return f
}

func TestParseTests(t *testing.T) {
	tests := must.Get(parseTests("rules.test.yaml", []byte(`version: 1
tests:
  - name: two a minute
    start: 2026-03-02T13:55:00Z
    events:
      - {at: 0s, event: {client: 192.0.2.1, status: 404}, repeat: 2 every 1.5s, expect: allowed}
      - at: 59s
        event: {client: 192.0.2.1}
        expect: refused by per-client
      - {at: 1h, event: {client: "2001:db8::1", session: a b}, repeat: 10}
  - name: customers
    logs: access.log
    format: clf
    key: user
    never_refuse: [ada, bob]
`), testedFile(t)))(t)
	one := tests.Tests[0]
	want := []testEvent{
		{6, 9, 0, map[string]string{"client": "192.0.2.1", "status": "404"}, 2, 1500 * time.Millisecond, expectation{"allowed", ""}},
		{7, 9, 59 * time.Second, map[string]string{"client": "192.0.2.1"}, 1, 0, expectation{"refused", "per-client"}},
		{10, 9, time.Hour, map[string]string{"client": "2001:db8::1", "session": "a b"}, 10, 0, expectation{}},
	}
	if one.Name != "two a minute" || one.Line != 3 || one.Start.Unix() != 1772459700 || one.Key != "client" || fmt.Sprint(one.Events) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", one, want)
	}
	two := tests.Tests[1]
	if fmt.Sprintf("%v %s %s %v %d %d", two.Logs, two.Format, two.Key, two.NeverRefuse, two.Line, len(two.Events)) != "[access.log] clf user [ada bob] 11 0" {
		t.Errorf("%+v", two)
	}
	if s := want[1].Expect.String(); s != "refused by per-client" {
		t.Errorf("%q", s)
	}
}

// Each mistake in a test file is reported at its position, with what must be there.
func TestMistakesInTests(t *testing.T) {
	const event = "version: 1\ntests:\n  - name: a\n    events:\n      - {at: 0s, event: {client: a}, "
	for text, want := range map[string]string{
		"version: 1\n":                               `1:1: file: missing key tests: `,
		"version: 1\n---\ntests: []":                 `3:1: second document: must be one document in a file`,
		"version: 2\ntests: []":                      `1:10: version: "2": must be 1`,
		"version: 1\ntests: one":                     `2:8: tests: "one": must be a list of tests, each beginning with "- name:"`,
		"version: 1\ntests: []":                      `2:8: tests: an empty list: must be a list of tests`,
		"version: 1\ntests:\n  - {name: a}":          `3:5: test: must have events or logs, one of them`,
		"version: 1\ntests:\n  - {name: a, logs: b}": `test: missing key never_refuse: `,
		"version: 1\ntests:\n  - {name: a, logs: b, never_refuse: c, start: 2026-03-02T13:55:00Z}":             `start: no effect without events`,
		"version: 1\ntests:\n  - {name: a, logs: b, never_refuse: c, evnets: []}":                              `test: unknown key "evnets": did you mean events?`,
		"version: 1\ntests:\n  - {name: a, events: [{at: 0s, event: {client: a}}], start: noon}":               `start: "noon": must be a time from 1970 to 2100`,
		"version: 1\ntests:\n  - {name: a, events: [{at: 0s, event: {client: a}}], format: clf}":               `format: no effect without logs`,
		"version: 1\ntests:\n  - {name: a, events: [{at: 0s, event: {client: a}}], key: user}":                 `key: no effect without never_refuse`,
		"version: 1\ntests:\n  - {name: a, logs: b, never_refuse: c}\n  - {name: a, logs: b, never_refuse: c}": `4:12: name: "a": must be unique among tests, and line 3 has it`,
		event + "expect: denied}":           `5:46: expect: "denied": must be "allowed", "refused" or "banned", or with the rule that decides, "refused by NAME"`,
		event + "expect: allowed by flood}": `expect: "allowed by flood": must be`,
		event + "expect: refused by page}":  `expect: "refused by page": no rule is named "page": must be the name of a limit or ban`,
		event + "repeat: 0}":                `repeat: "0": must be a number from 1 to 1000000`,
		event + "repeat: 2 every s}":        `repeat: "2 every s": must be whole milliseconds`,
		event + "repeat: 999999}\n" + "      - {at: 0s, event: {client: a}, repeat: 2}": `6:9: events: too many: must be at most 1000000 in a test`,
		event + "at: 1}": `event: key "at" twice`,
		strings.Replace(event, "0s", "-1s", 1) + "}":             `at: "-1s": must be whole milliseconds`,
		strings.Replace(event, "client", "cost", 1) + "}":        `event: field "cost": must be another name`,
		strings.Replace(event, "client: a", "client: ", 1) + "}": `client: empty: must be a value`,
		event: `syntax error`,
	} {
		tests, err := parseTests("t.yaml", []byte(text), testedFile(t))
		all, ok := errors.AsType[rules.Errors](err)
		if !ok || !strings.Contains(all.Error(), want) || !strings.HasPrefix(all.Error(), "t.yaml:") || tests != nil {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
	if _, err := Test(t.Context(), testedFile(t), "/nowhere.test.yaml", nil); err == nil || !strings.HasPrefix(err.Error(), "tests: ") {
		t.Error(err)
	}
}

// TestAtZero has the start of a test in each unit.
func TestAtZero(t *testing.T) {
	for _, zero := range []string{"0", "0ms", "0s", "0m", "0h", "0d", "0w"} {
		if d, err := parseAt(zero); d != 0 || err != nil {
			t.Errorf("%s: %v, %v", zero, d, err)
		}
	}
	for _, bad := range []string{"", "ms", "00s", "0us", "-0s", "0.5"} {
		if d, err := parseAt(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, d)
		}
	}
}

// FuzzParseTests parses any text in bounded time. Accepted tests are within their bounds, and rejected ones have errors
// with positions.
func FuzzParseTests(f *testing.F) {
	file := testedFile(f)
	f.Add([]byte("version: 1\ntests:\n  - {name: a, events: [{at: 0s, event: {client: a}, repeat: 3 every 1s, expect: banned by flood}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tests, err := parseTests("t.yaml", data, file)
		if err != nil {
			all, ok := errors.AsType[rules.Errors](err)
			if !ok || len(all) == 0 || all[0].Line < 1 || all[0].Column < 1 {
				t.Errorf("%v", err)
			}
			return
		}
		for _, test := range tests.Tests {
			events := 0
			for _, e := range test.Events {
				if events += e.Repeat; e.Repeat < 1 || e.At < 0 || e.Every < 0 || len(e.Fields) == 0 && strings.Contains(e.Expect.Rule, "\n") {
					t.Errorf("%+v", e)
				}
			}
			if test.Name == "" || events > maxTestEvents || (len(test.Logs) == 0) == (len(test.Events) == 0) {
				t.Errorf("%+v", test)
			}
		}
	})
}
