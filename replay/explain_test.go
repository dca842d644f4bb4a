package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	bans "github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

const explainFormat = "csv:time=1@ms,client=2"

func mustExplain(t *testing.T, c replay.ExplainConfig) *replay.Explanation {
	t.Helper()
	x := must.Get(replay.Explain(t.Context(), c))(t)
	return x
}

// explainLog is events of three clients, no two at the same time and none at a full
// second, in the order of time. Line i+1 is moment i.
func explainLog(t *testing.T, events, stepMillis int) (data []byte, moments []moment) {
	rnd := randtest.New(t)
	at := int64(1_767_225_590_001)
	for range events {
		at += 1 + int64(rnd.IntN(2*stepMillis))
		if rnd.IntN(40) == 0 {
			at += int64(rnd.IntN(100 * stepMillis))
		}
		if at%1000 == 0 {
			at++
		}
		client := fmt.Sprint("c", rnd.IntN(3))
		data = fmt.Appendf(data, "%d,%s\n", at, client)
		moments = append(moments, moment{t: at, values: map[string]string{"client": client}})
	}
	return data, moments
}

// counts returns the events at times, in ms, that a limit allowed and that are in its window at t, by the definition of its
// algorithm.
func counts(rule *ratelimit.Rule, times []int64, t int64) (in []int64) {
	l := rule.Limits[0]
	span := l.Span.Milliseconds()
	keep := func(f func(s int64) bool) {
		for _, s := range times {
			if f(s) {
				in = append(in, s)
			}
		}
	}
	slot := func(s, width int64) int64 { return s / width }
	switch rule.Algorithm {
	case ratelimit.Exact, ratelimit.InFlight:
		keep(func(s int64) bool { return s > t-span })
	case ratelimit.Sliding:
		keep(func(s int64) bool { return s > t-span })
		if l.N > 128 { // and those that leave with their slot: exactly N count
			in = times[len(times)-int(l.N):]
			if in[0] <= t-span-span/60 {
				in = nil // more than a slot too old
			}
		}
	case ratelimit.Fixed:
		from := int64(0)
		for _, s := range times {
			if s >= from+span {
				from = s
			}
		}
		keep(func(s int64) bool { return s >= from })
	case ratelimit.Calendar:
		minute := func(ms int64) time.Time { return time.UnixMilli(ms).UTC().Truncate(time.Minute) }
		keep(func(s int64) bool { return minute(s).Equal(minute(t)) })
	case ratelimit.TwoBucket:
		keep(func(s int64) bool { return (slot(s, span)+1)*span > t-span })
	default: // a bucket: since it was empty
		drain := big.NewRat(span, int64(l.N))
		empty := new(big.Rat)
		for _, s := range times {
			if at := new(big.Rat).SetInt64(s); at.Cmp(empty) >= 0 {
				empty, in = at, nil
			}
			empty = new(big.Rat).Add(empty, drain)
			in = append(in, s)
		}
	}
	return in
}

// TestExplain explains random refusals of each algorithm, and compares the events in the window with its definition, and
// the time of the next request with a limiter. LATELY_LONG=1 explains 1,000 for each.
func TestExplain(t *testing.T) {
	refusals := 150
	switch {
	case os.Getenv("LATELY_LONG") != "":
		refusals = 1000
	case testing.Short():
		refusals = 40
	}
	for name, c := range map[string]struct {
		limit        string
		events, step int
	}{
		"sliding":      {"5 per 2s", 200, 100},
		"slots":        {"130 per 6s", 600, 10},
		"exact":        {"7 per 3s", 200, 100},
		"count":        {"6 per 3s", 200, 100},
		"two-bucket":   {"6 per 3s", 200, 100},
		"gcra":         {"7 per 5s burst 4", 200, 100},
		"leaky-bucket": {"3 per 2s burst 5", 200, 100},
		"fixed":        {"5 per 3s", 200, 100},
		"calendar":     {"40 per minute", 300, 200},
		"in-flight":    {"4 at once for 2s", 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := ", algorithm: " + name
			switch name {
			case "slots":
				more = ""
			case "count":
				more = ", algorithm: exact, count_refused: true"
			}
			file := mustRules(t, "version: 1\nlimits:\n  - {name: limit, key: client, limit: "+c.limit+more+"}\n")
			rnd := randtest.New(t)
			for explained := 0; explained < refusals; {
				data, moments := explainLog(t, c.events, c.step)
				said := limiterJudge(t, file, 0, moments)
				path := writeFile(t, "log.csv", data)
				for range refusals / 5 {
					i := rnd.IntN(len(moments))
					if !said[i].allowed {
						explained++
						checkExplained(t, replay.Config{Files: []string{path}, Format: explainFormat, Rules: file, Cores: 1}, moments, said, i)
					}
					if t.Failed() {
						t.Fatalf("event %d\n%s", i, data)
					}
				}
			}
		})
	}
}

func checkExplained(t *testing.T, c replay.Config, moments []moment, said []said, i int) {
	t.Helper()
	rule, m := c.Rules.Limits.Rules()[0], moments[i]
	x := mustExplain(t, replay.ExplainConfig{Config: c, Value: m.values["client"], At: replay.Bound{At: time.UnixMilli(m.t)}})
	if x.Allowed || x.Rule != "limit" || x.Event.Line != int64(i+1) || x.Event.T.UnixMilli() != m.t || len(x.Rules) != 1 || !x.Rules[0].Refused {
		t.Errorf("%+v, want the refused event of line %d", x, i+1)
		return
	}
	var own []int64 // times that were counted
	lines := make(map[int64]int64)
	for j, before := range moments[:i] {
		if before.values["client"] == m.values["client"] && (said[j].allowed || rule.CountRefused) {
			own = append(own, before.t)
			lines[before.t] = int64(j + 1)
		}
	}
	want := counts(rule, own, m.t)
	if rule.CountRefused {
		want = want[len(want)-int(rule.Limits[0].N):] // the last N fill it
	}
	var got []int64
	for _, l := range x.Rules[0].Counted {
		got = append(got, l.T.UnixMilli())
		if l.Line != lines[l.T.UnixMilli()] || l.File != c.Files[0] {
			t.Errorf("%+v is line %d of %s", l, lines[l.T.UnixMilli()], c.Files[0])
		}
	}
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("in the window at %d are %v, want %v", m.t, got, want)
	}
	// A limiter that has seen the log up to there refuses until then, and no longer.
	for _, early := range []bool{true, false} {
		limiter := must.Get(ratelimit.NewLimiter(c.Rules.Limits, ratelimit.Config{}))(t)
		for _, before := range moments[:i+1] {
			limiter.Internal().JudgeAt(time.UnixMilli(before.t), &batch.Query{Event: eventOf(before), Cost: 1}, nil)
		}
		next := x.NextPasses.Time
		if early {
			next = next.Add(-1)
		}
		if d, _ := limiter.Internal().JudgeAt(next, &batch.Query{Event: eventOf(m), Cost: 1}, nil); d.Allowed == early {
			t.Errorf("the next request passes at %v, but at %v it is allowed %v", x.NextPasses, next, d.Allowed)
		}
	}
}

// TestExplainBans explains events during bans for hits and for refusals, and compares what started the ban with the
// decisions of a Limiter.
func TestExplainBans(t *testing.T) {
	for _, text := range []string{
		"bans:\n  - {name: rule, key: client, after: 4 hits in 2s, for: 3s}\n",
		"limits:\n  - {name: rule, key: client, limit: 3 per 2s, ban: {after: 2 refusals in 4s, for: 3s, factor: 2}}\n",
	} {
		file := mustRules(t, "version: 1\n"+text)
		data, moments := explainLog(t, 300, 100)
		path := writeFile(t, "log.csv", data)
		said := limiterJudge(t, file, 0, moments)
		ban := file.Limits.Rules()[0].Ban
		explained := 0
		type state struct {
			start   int
			until   int64
			strikes []int   // hits or refusals since the last ban began
			cause   []int64 // lines of the events that started the ban
			bans    int
		}
		states := make(map[string]*state)
		for i, m := range moments {
			client := m.values["client"]
			s := states[client]
			if s == nil {
				s = &state{start: -1}
				states[client] = s
			}
			r := said[i].rules[0]
			held := m.t < s.until
			if r.started {
				s.start, s.until, s.cause = i, m.t+(*bans.Policy)(ban).Duration(s.bans).Milliseconds(), nil
				for _, j := range s.strikes {
					if moments[j].t > m.t-ban.Span.Milliseconds() {
						s.cause = append(s.cause, int64(j+1))
					}
				}
				s.strikes = nil
				s.bans++
			}
			if held || r.started {
				x := mustExplain(t, replay.ExplainConfig{
					Config: replay.Config{Files: []string{path}, Format: explainFormat, Rules: file}, Value: client, At: replay.Bound{At: time.UnixMilli(m.t)},
				})
				b := x.Rules[0].Ban
				if b == nil || b.Start.Line != int64(s.start+1) || b.Until.UnixMilli() != s.until {
					t.Fatalf("%s: line %d: %+v; want a ban by line %d until %d", text, i+1, x, s.start+1, s.until)
				}
				var got []int64
				for _, l := range b.Counted {
					got = append(got, l.Line)
				}
				if !slices.Equal(got, s.cause) {
					t.Fatalf("%s: line %d: the ban counted lines %v, want %v\n%s", text, i+1, got, s.cause, data)
				}
				explained++
				continue
			}
			if ban.Of == ratelimit.Hits || r.refused {
				s.strikes = append(s.strikes, i)
			}
		}
		if explained < 20 {
			t.Errorf("%s: %d events during bans: the test has no teeth", text, explained)
		}
	}
}

// TestExplainFinds looks up a client in other notations, a part of a key, and a value that no rule counts by, in two files
// that overlap and have lines without events.
func TestExplainFinds(t *testing.T) {
	first := "\n" + clfAt(1_700_000_000, "2001:db8::1", "/a") + "no event\n" + clfAt(1_700_000_009, "2001:db8::2", "/b")
	second := clfAt(1_700_000_005, "::ffff:192.0.2.1", "/a") + clfAt(1_700_000_007, "2001:0db8::3", "/a")
	file := mustRules(t, `
version: 1
limits:
  - {name: net, key: client, limit: 1 per 1m}
  - {name: path, key: ["user | client", path], limit: 5 per 1m, mode: shadow}
`)
	folder := t.TempDir()
	files := []string{folder + "/a", folder + "/b"}
	for i, text := range []string{first, second} {
		must.Do(t, os.WriteFile(files[i], []byte(text), 0o600))
	}
	for _, c := range []struct {
		value, at string
		place     string
		allowed   bool
		events    int64
		counted   string
	}{
		{"2001:db8::1", "", "a:4", false, 3, "[a:2]"},
		{"2001:db8::1", "2023-11-14T22:13:27Z", "b:2", false, 3, "[a:2]"},
		{"2001:db8::/64", "-3s", "a:2", true, 3, "[a:2]"},
		{"192.0.2.1", "", "b:1", true, 1, "[b:1]"},
		{"/a", "", "b:2", false, 3, "[a:2]"},
		{"2001:0db8::3", "", "a:4", false, 3, "[a:2]"},
	} {
		x := replay.ExplainConfig{Config: replay.Config{Files: files, Format: "clf", Rules: file}, Value: c.value}
		if c.at != "" {
			x.At = must.Get(replay.ParseBound(c.at, nil))(t)
		}
		got := mustExplain(t, x)
		place := func(l replay.LogLine) string {
			return fmt.Sprintf("%s:%d", strings.TrimPrefix(l.File, folder+"/"), l.Line)
		}
		var counted []string
		for _, l := range got.Rules[0].Counted {
			counted = append(counted, place(l))
		}
		if place(got.Event) != c.place || got.Allowed != c.allowed || got.Events != c.events || fmt.Sprint(counted) != c.counted || got.Rules[0].Name != "net" {
			t.Errorf("%s at %q: %s, allowed %v, %d events, counted %v; want %+v", c.value, c.at, place(got.Event), got.Allowed, got.Events, counted, c)
		}
		if len(got.Rules) != 2 || got.Rules[1].Mode != "shadow" || got.Rules[0].Sentence != sentence.Limit(file.Limits.Rules()[0]) {
			t.Errorf("%s: %+v", c.value, got.Rules)
		}
	}
	_, err := replay.Explain(t.Context(), replay.ExplainConfig{Config: replay.Config{Files: files, Format: "clf", Rules: file}, Value: "/c"})
	if _, ok := errors.AsType[*replay.InputError](err); !ok || err.Error() != "--key /c: no event of it is judged by a rule" {
		t.Errorf("%v", err)
	}
	var text bytes.Buffer
	x := mustExplain(t, replay.ExplainConfig{Config: replay.Config{Files: files, Format: "clf", Rules: file}, Value: "2001:db8::1"})
	if err := x.WriteText(&text, replay.TextStyle{}); err != nil || !strings.Contains(text.String(), "refused by net") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestExplainErrors gives what cannot be explained.
func TestExplainErrors(t *testing.T) {
	file := mustRules(t, "version: 1\nlimits: [{name: a, key: client, limit: 5 per 1s}]\n")
	none := func(func(*match.Event) bool) {}
	for want, c := range map[string]replay.ExplainConfig{
		"events: must not be set": {Config: replay.Config{Rules: file, Events: none}, Value: "192.0.2.1"},
		"--rules: missing":        {Value: "192.0.2.1"},
		"--key: missing":          {Config: replay.Config{Rules: file}},
	} {
		if _, err := replay.Explain(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
