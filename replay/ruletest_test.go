package replay_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

func runTests(t *testing.T, file *rules.File, name, text string) *replay.TestReport {
	t.Helper()
	report := must.Get(replay.TestText(t.Context(), file, name, []byte(text), nil))(t)
	return report
}

const testedRules = `
version: 1
fields: {session: {cookie: sid}}
limits:
  - {name: minute, key: client, limit: 2 per 1m}
  - {name: day, key: session, limit: 3 per day, algorithm: calendar}
bans:
  - {name: flood, key: client, when: {path: "/login"}, after: 3 hits in 1m, for: 10m}
`

// TestTests has tests that pass, and each of them with one word changed: it must fail, at the position of that word's
// event.
func TestTests(t *testing.T) {
	file := mustRules(t, testedRules)
	const passes = `version: 1
tests:
  - name: minute
    events:
      - {at: 0s, event: {client: 192.0.2.1}, repeat: 2 every 10s, expect: allowed}
      - {at: 59s, event: {client: "::ffff:192.0.2.1"}, expect: refused by minute}
      - {at: 60s, event: {client: 192.0.2.1}, expect: allowed}
      - {at: 5s, event: {client: 192.0.2.2}, expect: allowed}
    never_refuse: [192.0.2.2]
  - name: ban
    events:
      - {at: 0s, event: {client: 192.0.2.1, path: "/x/../login"}, repeat: 3 every 1s}
      - {at: 3s, event: {client: 192.0.2.1, path: /login}, expect: banned by flood}
      - {at: 602s, event: {client: 192.0.2.1, path: /login}, expect: refused}
      - {at: 603s, event: {client: 192.0.2.1, path: /login}, expect: allowed}
  - name: midnight
    start: 2026-03-02T23:59:58Z
    events:
      - {at: 1s, event: {session: a}, repeat: 4}
      - {at: 1500ms, event: {session: a}, expect: refused by day}
      - {at: 2s, event: {session: a}, repeat: 3, expect: allowed}
`
	if r := runTests(t, file, "t.yaml", passes); r.Failed != 0 || len(r.Tests) != 3 || r.Tests[0].Events != 5 {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct{ old, new, want string }{
		{"60s, ", "59s, ", "t.yaml:7:9: event client=192.0.2.1 at 59s: must be allowed, was refused by minute"},
		{"expect: refused by minute", "expect: allowed", "t.yaml:6:9: event client=::ffff:192.0.2.1 at 59s: must be allowed, was refused by minute"},
		{"refused by minute", "refused by day", "t.yaml:6:9: event client=::ffff:192.0.2.1 at 59s: must be refused by day, was refused by minute"},
		{"refused by minute", "banned", "t.yaml:6:9: event client=::ffff:192.0.2.1 at 59s: must be banned, was refused by minute"},
		{"repeat: 2 every 10s", "repeat: 3 every 10s", "t.yaml:5:9: event client=192.0.2.1 at 20s: must be allowed, was refused by minute"},
		{"[192.0.2.2]", "[192.0.2.0/24]", "t.yaml:3: never_refuse: ::ffff:192.0.2.1 is refused once, first by minute at 2024-01-01 00:00:59 UTC"},
		{"[192.0.2.2]", "[192.0.2.3]", "t.yaml:3: never_refuse: no event of 192.0.2.3: must be a client of the events"},
		{"at: 603s", "at: 602s", "t.yaml:15:9: event client=192.0.2.1 path=/login at 10m2s: must be allowed, was banned by flood"},
		{"start: 2026-03-02T23:59:58Z", "start: 2026-03-02T23:59:57Z", "t.yaml:21:9: event session=a at 2s: must be allowed, was refused by day"},
	} {
		text := strings.Replace(passes, c.old, c.new, 1)
		r := runTests(t, file, "t.yaml", text)
		if r.Failed != 1 || !slices.Contains(slices.Concat(r.Tests[0].Failures, r.Tests[1].Failures, r.Tests[2].Failures), c.want) {
			t.Errorf("%s instead of %s: %+v, want %s", c.new, c.old, r, c.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r, err := replay.TestText(ctx, file, "t.yaml", []byte(passes), nil); err == nil {
		t.Errorf("%+v after an interrupt", r)
	}
}

// TestTestsOfRequests has requests without an answer beside whole events, under a rule about answers, which judges requests as in a server.
func TestTestsOfRequests(t *testing.T) {
	file := mustRules(t, `
version: 1
limits:
  - {name: failed, key: client, when: {path: /login, status: 401}, limit: 2 per 1m}
`)
	r := runTests(t, file, "t.yaml", `version: 1
tests:
  - name: logins
    events:
      - {at: 0s, event: {client: 192.0.2.1, path: /login}, repeat: 5, expect: allowed}
      - {at: 1s, event: {client: 192.0.2.1, path: /login, status: 401}, repeat: 2, expect: allowed}
      - {at: 2s, event: {client: 192.0.2.1, path: /login}, expect: refused by failed}
      - {at: 2s, event: {client: 192.0.2.1, path: /}, expect: allowed}
      - {at: 61s, event: {client: 192.0.2.1, path: /login}, expect: allowed}
`)
	if r.Failed != 0 || r.Tests[0].Events != 10 {
		t.Errorf("%+v", r)
	}
}

// TestTestOfFarEvents has events at times that no replay judges, some too far apart for a time.Duration.
func TestTestOfFarEvents(t *testing.T) {
	r := runTests(t, mustRules(t, testedRules), "t.yaml", `version: 1
tests:
  - name: far
    start: 2100-12-31T00:00:00Z
    events:
      - {at: 1s, event: {client: a}, repeat: 7 every 3650d, expect: allowed}
  - name: farther
    start: 2024-01-01T00:00:00Z
    events:
      - {at: 1s, event: {client: a}, repeat: 1000 every 3650d, expect: allowed}
`)
	for i, want := range []string{"t.yaml:3: 2 events are not of a year from 1900 to 2149", "t.yaml:7: 987 events are not of a year from 1900 to 2149"} {
		if got := r.Tests[i].Failures; len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTestsAgreeWithLimiter takes random events under random rules, expects for each the decision of a Limiter, and then
// for one of them the opposite.
func TestTestsAgreeWithLimiter(t *testing.T) {
	rnd := randtest.New(t)
	for range 40 {
		_, folded := rulesLog(rnd, 60, 200*time.Millisecond)
		_, text := randomRules(rnd, time.Second, rnd.IntN(2) == 0)
		file := mustRules(t, text)
		start := time.UnixMilli(1_700_000_000_000).UTC()
		moments := ordered(folded, time.Millisecond)
		start = start.Add(time.Duration(min(moments[0].t-start.UnixMilli(), 0)) * time.Millisecond).Truncate(time.Second)
		said := limiterJudge(t, file, 0, moments)
		wrong := rnd.IntN(len(moments))
		for _, flip := range []bool{false, true} {
			var b strings.Builder
			fmt.Fprintf(&b, "version: 1\ntests:\n  - name: all\n    start: %s\n    events:\n", start.Format(time.RFC3339))
			for i, m := range moments {
				expect := "refused"
				if said[i].allowed != (flip && i == wrong) {
					expect = "allowed"
				}
				fmt.Fprintf(&b, "      - {at: %dms, expect: %s, event: {", m.t-start.UnixMilli(), expect)
				for _, name := range []string{"client", "method", "path", "user"} {
					if v := m.values[name]; v != "" && !strings.Contains(v, "\xff") {
						fmt.Fprintf(&b, "%s: %q, ", name, v)
					}
				}
				b.WriteString("host: example}}\n")
			}
			if strings.Contains(string(mustJoin(moments)), "\xff") {
				continue // YAML has no such bytes
			}
			r := runTests(t, file, "t.yaml", b.String())
			if r.Failed > 0 != flip || flip && !strings.HasPrefix(r.Tests[0].Failures[0], fmt.Sprintf("t.yaml:%d:9: ", 6+wrong)) {
				t.Fatalf("%+v\n%s\n%s", r, text, b.String())
			}
		}
	}
}

func mustJoin(moments []moment) (all []byte) {
	for _, m := range moments {
		all = append(all, m.values["client"]...)
	}
	return all
}

// TestTestsOfLogs has logs beside the test file with a client and a network that must not be refused, and one log that does
// not exist.
func TestTestsOfLogs(t *testing.T) {
	folder := t.TempDir()
	var log strings.Builder
	for sec := range int64(5) {
		log.WriteString(clfAt(1_700_000_000+sec, "192.0.2.1", "/") + clfAt(1_700_000_000+60*sec, "198.51.100.1", "/"))
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "access.log"), []byte(log.String()), 0o600))
	r := runTests(t, mustRules(t, testedRules), filepath.Join(folder, "t.yaml"), `version: 1
tests:
  - {name: "good", logs: access.log, never_refuse: [198.51.100.0/24]}
  - {name: "flood", logs: [access.log], format: clf, never_refuse: ["198.51.100.1", "192.0.2.1"]}
  - {name: "user \e[31m", logs: access.log, key: user, never_refuse: ada}
  - {name: "none", logs: nowhere.log, never_refuse: [a]}
`)
	at := filepath.Join(folder, "t.yaml")
	for i, want := range []string{
		"",
		at + ":4: never_refuse: 192.0.2.1 is refused 3 times, first by minute at " + filepath.Join(folder, "access.log") + ":5",
		at + ":5: never_refuse: no event of ada: must be a user of the events",
		at + ":6: " + filepath.Join(folder, "nowhere.log") + ": cannot be read: no such file or directory",
	} {
		got := r.Tests[i].Failures
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%s: %q, want %q", r.Tests[i].Name, got, want)
		}
	}
	if r.Failed != 3 {
		t.Errorf("%d failed, want 3", r.Failed)
	}
	var junit bytes.Buffer
	must.Do(t, replay.WriteJUnit(&junit, []*replay.TestReport{r}))
	var parsed struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &parsed); err != nil || parsed.Tests != 4 || parsed.Failures != 3 || len(parsed.Suites) != 1 {
		t.Fatalf("%v, %+v\n%s", err, parsed, junit.String())
	}
	cases := parsed.Suites[0].Cases
	if cases[0].Failure != nil || cases[1].Failure == nil || cases[1].Failure.Message != r.Tests[1].Failures[0] || cases[2].Name != `user \x1b[31m` {
		t.Errorf("%+v\n%s", cases, junit.String())
	}
}
