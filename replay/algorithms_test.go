package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine that tests may have no time zone database

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// clientLog returns a log of a dozen clients over some weeks, some of them busy, as lines and as moments. Its first quarter
// has no pauses, so that a limit with a burst for half a minute of a busy client refuses in every such log.
func clientLog(t *testing.T, events int) (data []byte, moments []moment) {
	rnd := randtest.New(t)
	at := time.Date(2026, 1, 30, 23, 59, 50, 0, time.UTC)
	var records []record
	for i := range events {
		at = at.Add(time.Duration(rnd.IntN(150)) * time.Millisecond)
		if i >= events/4 && rnd.IntN(200) == 0 {
			at = at.Add(time.Duration(rnd.IntN(40)) * time.Hour)
		}
		client := fmt.Sprint("c", rnd.IntN(1+rnd.IntN(12)))
		data = fmt.Appendf(data, "%d,%s\n", at.UnixMilli(), client)
		records = append(records, record{at, map[string]string{"client": client}})
	}
	return data, ordered(records, time.Millisecond)
}

// TestEveryAlgorithm replays one log of milliseconds under every algorithm, on several cores: the decisions are those of a
// live Limiter that gets the events one by one, also where it counts in slots.
func TestEveryAlgorithm(t *testing.T) {
	data, moments := clientLog(t, 4000)
	path := writeFile(t, "log.csv", data)
	for _, name := range limit.AlgorithmNames() {
		algorithm := must.Get(limit.AlgorithmNamed(name))(t)
		texts := []string{"4/10s", "70/1m", "0/1s"}
		if name == "calendar" {
			texts = []string{"4/second", "9/1m", "70/day", "20/24h", "200/week", "300/month", "0/hour"}
		}
		for _, text := range texts {
			w := whatIf(t, replay.Limit, "%s", text)
			r, decisions := mustDecide(t, replay.Config{
				Files: []string{path}, Format: "csv:time=1@ms,client=2", WhatIfs: []replay.WhatIf{w}, Algorithm: algorithm, Cores: 3,
			})
			want := oneByOne(t, algorithm, ratelimit.Limit{N: w.N, Span: w.Span, Per: w.Per}, moments)
			if string(decisions) != want {
				t.Errorf("--algorithm %s --limit %s: the decisions differ from those of a Limiter", name, text)
			}
			if got := r.Rules[0]; got.Algorithm != algorithm.String() || got.Period != w.Per.String() || got.SpanSeconds == 0 {
				t.Errorf("--algorithm %s --limit %s: in the report: %+v", name, text, got)
			}
			if no := strings.Count(want, "D"); no == 0 || w.N > 0 && no == len(want) {
				t.Errorf("--algorithm %s --limit %s: %d of %d refused: the test has no teeth", name, text, no, len(want))
			}
		}
	}
}

func oneByOne(t *testing.T, a ratelimit.Algorithm, l ratelimit.Limit, moments []moment) string {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{Off: true}, "client"))(t)
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{Name: "x", Key: key, Algorithm: a, Limits: []ratelimit.Limit{l}}))(t)
	limiter := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	rule := must.Get(limiter.Rule("x"))(t)
	var b strings.Builder
	for _, m := range moments {
		b.WriteByte(letter(rule.TakeAt(time.UnixMilli(m.t), 1, m.values["client"]).Allowed))
	}
	return b.String()
}

// TestPeriods compares calendar limits with a count by the date of time.Time, and in-flight limits with their definition
// for logs: since no event reports its end, each is in flight for the whole span, which is what exact counts.
func TestPeriods(t *testing.T) {
	data, moments := clientLog(t, 4000)
	path := writeFile(t, "log.csv", data)
	run := func(text string, a ratelimit.Algorithm) string {
		_, decisions := mustDecide(t, replay.Config{
			Files: []string{path}, Format: "csv:time=1@ms,client=2", WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "%s", text)}, Algorithm: a, Cores: 2,
		})
		return string(decisions)
	}
	for text, layout := range map[string]string{"5/minute": "200601021504", "60/day": "20060102", "60/24h": "20060102", "300/month": "200601"} {
		n := numbers(t, text)[0]
		seen := make(map[string]int)
		want := ""
		for _, m := range moments {
			key := m.values["client"] + time.UnixMilli(m.t).UTC().Format(layout)
			want += string(letter(seen[key] < n))
			seen[key]++
		}
		if got := run(text, ratelimit.Calendar); got != want {
			t.Errorf("--limit %s: the decisions differ from those of the calendar", text)
		}
	}
	if run("4/10s", ratelimit.InFlight) != run("4/10s", ratelimit.Exact) {
		t.Error("in-flight and exact decide differently, though no event is ever over")
	}
}

// TestLimitsInReports checks what reports contain for limits with more than count and span, from rules files and what-ifs,
// in JSON and in the plain report.
func TestLimitsInReports(t *testing.T) {
	path := writeFile(t, "log.csv", []byte("1,a\n2,b\n"))
	file := mustRules(t, `
version: 1
limits:
  - {name: bucket, key: client, limit: [9 per 1s burst 20, 99 per 1m], algorithm: token-bucket}
  - {name: month, key: client, limit: 9 per month, algorithm: calendar, zone: Europe/Vienna}
  - {name: traffic, key: client, limit: 9 per 1s, adapt: {steps: 9 below 1 per 1s, above: 3}}
bans:
  - {name: steps, key: client, after: 9 hits in 1s, for: [5m, 1h]}
`)
	for _, c := range []struct {
		config replay.Config
		json   []string
		text   []string
	}{
		{replay.Config{Rules: file}, []string{
			`"n":9,"span_seconds":1,"burst":20,"limits":[{"n":9,"span_seconds":1,"burst":20},{"n":99,"span_seconds":60}],"algorithm":"gcra"`,
			`"n":9,"span_seconds":2678400,"period":"month","algorithm":"calendar","zone":"Europe/Vienna"`,
			`"n":9,"span_seconds":1,"algorithm":"sliding","adapts":true`,
			`"n":9,"span_seconds":1,"ban_seconds":300,"algorithm":"exact"`,
		}, []string{"limit bucket (by client, gcra)", "limit month (by client, calendar)"}},
		{replay.Config{WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "9/day")}, Algorithm: ratelimit.Calendar}, []string{
			`"name":"9/day","kind":"limit","fields":["client"],"n":9,"span_seconds":86400,"period":"day","algorithm":"calendar"`,
		}, []string{"limit 9/day (by client, calendar)"}},
		{replay.Config{WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "9/1s")}, Algorithm: ratelimit.LeakyBucket}, []string{
			`"n":9,"span_seconds":1,"algorithm":"leaky-bucket"`,
		}, []string{"limit 9/1s (by client, leaky-bucket)"}},
	} {
		c.config.Files, c.config.Format = []string{path}, smallFormat
		r := mustRun(t, c.config)
		out := must.Get(json.Marshal(r))(t)
		var text bytes.Buffer
		must.Do(t, r.WriteText(&text, replay.TextStyle{}))
		for _, want := range c.json {
			if !strings.Contains(string(out), want) {
				t.Errorf("the JSON report lacks %s:\n%s", want, out)
			}
		}
		for _, want := range c.text {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the plain report lacks %s:\n%s", want, text.String())
			}
		}
	}
}

// TestEdgesAndResolution has windows with edges that times floored to the resolution can and cannot distinguish.
func TestEdgesAndResolution(t *testing.T) {
	path := writeFile(t, "log.csv", []byte("1,a\n"))
	rule := func(limit, zone string) string {
		return "version: 1\nlimits:\n- {name: x, key: client, algorithm: calendar, limit: " + limit + ", zone: " + zone + "}\n"
	}
	for _, c := range []struct {
		rules, whatIf string
		algorithm     ratelimit.Algorithm
		resolution    time.Duration
		want          string
	}{
		{whatIf: "9/month", algorithm: ratelimit.Calendar, resolution: time.Hour},
		{whatIf: "9/7d", algorithm: ratelimit.Calendar, resolution: time.Hour},
		{whatIf: "9/7d", algorithm: ratelimit.Calendar, resolution: 7 * time.Second, want: "--limit 9/7d: window 24h0m0s: must be a multiple of the resolution 7s"},
		{whatIf: "9/7d", resolution: 7 * time.Second},
		{whatIf: "9/second", algorithm: ratelimit.Calendar, resolution: time.Minute, want: "--limit 9/second: window 1s: must be a multiple of the resolution 1m0s"},
		{rules: rule("9 per day", "UTC"), resolution: time.Hour},
		{rules: rule("9 per day", "Asia/Kathmandu"), resolution: time.Hour, want: "rule \"x\": window 15m0s: must be a multiple of the resolution 1h0m0s"},
		{rules: rule("9 per day", "Asia/Kathmandu"), resolution: 15 * time.Minute},
		{whatIf: "9/day"},
		{whatIf: "9/month", want: "--limit 9/month: month: must be a span, such as 720h, with algorithm sliding; only --algorithm calendar counts by months"},
		{whatIf: "9/2m", algorithm: ratelimit.Calendar, want: `--limit 9/2m: rule 1 ("9/2m"): limit: span 2m: must be 1s, 1m, 1h, 24h, 168h or a period with calendar`},
		{whatIf: "70000/1m", algorithm: ratelimit.InFlight, want: "must be at most 65535 with in-flight"},
	} {
		config := replay.Config{Files: []string{path}, Format: smallFormat, Algorithm: c.algorithm, Resolution: c.resolution}
		if c.rules != "" {
			config.Rules = mustRules(t, c.rules)
		} else {
			config.WhatIfs = []replay.WhatIf{whatIf(t, replay.Limit, "%s", c.whatIf)}
		}
		err := config.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s, resolution %v: %v; want %q", c.rules, c.whatIf, c.resolution, err, c.want)
		}
	}
}
