package rules

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine that tests may have no time zone database

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestKeysOfLimits holds what each key of a limit compiles to against the rule
// written in Go.
func TestKeysOfLimits(t *testing.T) {
	vienna := must.Get(time.LoadLocation("Europe/Vienna"))(t)
	for _, c := range []struct {
		lines string
		want  ratelimit.Rule
	}{
		{"limit: 60 per 1m burst 10\nalgorithm: gcra", ratelimit.Rule{
			Algorithm: ratelimit.GCRA, Limits: []ratelimit.Limit{{N: 60, Span: time.Minute, Burst: 10}},
		}},
		{"algorithm: leaky-bucket\nlimit: [60 per 1m burst 10, 1 per 1s]", ratelimit.Rule{
			Algorithm: ratelimit.LeakyBucket, Limits: []ratelimit.Limit{{N: 60, Span: time.Minute, Burst: 10}, {N: 1, Span: time.Second}},
		}},
		{"limit: [1000 per day, 9 per month]\nalgorithm: calendar\nzone: Europe/Vienna", ratelimit.Rule{
			Algorithm: ratelimit.Calendar, Zone: vienna,
			Limits: []ratelimit.Limit{{N: 1000, Per: ratelimit.PerDay}, {N: 9, Per: ratelimit.PerMonth}},
		}},
		{"limit: 9 per 1h\nalgorithm: calendar\nzone: UTC", ratelimit.Rule{
			Algorithm: ratelimit.Calendar, Zone: time.UTC, Limits: []ratelimit.Limit{{N: 9, Per: ratelimit.PerHour}},
		}},
		{"limit: 20 at once for 30s\nalgorithm: in-flight", ratelimit.Rule{
			Algorithm: ratelimit.InFlight, Limits: []ratelimit.Limit{{N: 20, Span: 30 * time.Second}},
		}},
		{"limit: 9 per 1s\nadapt:\n  steps: [2_000 below 60_000 per 1m, 1000 below 5000 per 1s]\n  above: 500", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Adapt:  adapt(0, 0, 0, 500, 1000, 2000, 5000, 1000),
		}},
		{"limit: 9 per 1s\nadapt: {steps: 3 below 1 per 2s, above: 0, span: 1h, hysteresis: 0}", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Adapt:  adapt(time.Hour, -1, 0, 0, 0.5, 3),
		}},
		{"limit: 9 per 1s\nadapt: {steps: 3 below 1 per 1s, above: 9, span: 1s, hysteresis: 0.99}", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Adapt:  adapt(time.Second, 0.99, 0, 9, 1, 3),
		}},
		{"limit: 9 per 1s\nadapt: {steps: 3 below 1 per 1s, above: 9, smooth: 1d}", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Adapt:  adapt(0, 0, 24*time.Hour, 9, 1, 3),
		}},
		{"limit: 9 per 1s\nban: {after: 2 hits in 1m, for: [5m, 1h, 1d], max: 2d, remember: 7d, jitter: 0.2, extend: true}", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Ban: &ratelimit.Ban{
				After: 2, Span: time.Minute, Steps: []time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour},
				Max: 48 * time.Hour, Remember: 7 * 24 * time.Hour, Jitter: 0.2, Extend: true,
			},
		}},
		{"limit: 9 per 1s\nban: {after: 2 hits in 1m, for: [5m], factor: 2, jitter: 1, extend: false}", ratelimit.Rule{
			Limits: []ratelimit.Limit{{N: 9, Span: time.Second}},
			Ban:    &ratelimit.Ban{After: 2, Span: time.Minute, For: 5 * time.Minute, Factor: 2, Jitter: 1},
		}},
	} {
		lines := append([]string{"name: x", "key: client"}, strings.Split(c.lines, "\n")...)
		f, err := Parse("r", []byte(oneLimit(lines...)))
		if err != nil {
			t.Errorf("%s\n%v", c.lines, err)
			continue
		}
		c.want.Name, c.want.Key = "x", key(t, match.Fold{}, "client")
		if got := f.Limits.Rules()[0]; !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s\nis %+v\nwant %+v", c.lines, *got, c.want)
		}
		if _, err := ratelimit.NewLimiter(f.Limits, ratelimit.Config{}); err != nil {
			t.Errorf("%s\nthe store does not take it: %v", c.lines, err)
		}
	}
}

// adapt returns an Adapt with steps of a traffic and a limit each.
func adapt(span time.Duration, hysteresis float64, smooth time.Duration, above uint64, steps ...float64) *ratelimit.Adapt {
	a := &ratelimit.Adapt{Span: span, Hysteresis: hysteresis, Smooth: smooth, Above: above}
	for i := 0; i < len(steps); i += 2 {
		a.Steps = append(a.Steps, struct {
			Below float64
			Limit uint64
		}{steps[i], uint64(steps[i+1])})
	}
	return a
}

// TestKeysOfBans has the keys of a ban in the section bans, too.
func TestKeysOfBans(t *testing.T) {
	f := must.Get(Parse("r", []byte("version: 1\nbans:\n- {name: x, key: client, after: 9 hits in 1s, for: [1s, 1m], jitter: 0.5, extend: true}\n")))(t)
	want := &ratelimit.Ban{After: 9, Span: time.Second, Steps: []time.Duration{time.Second, time.Minute}, Jitter: 0.5, Extend: true}
	if got := f.Limits.Rules()[0].Ban; !reflect.DeepEqual(got, want) {
		t.Errorf("the ban is %+v, want %+v", got, want)
	}
}

// TestBordersOfValues has values just within what package ratelimit takes, and just beyond, which is an error
// with a position.
func TestBordersOfValues(t *testing.T) {
	adaptLine := "steps: 9 below 1 per 1s, above: 9, "
	for _, c := range []struct{ within, beyond string }{
		{"adapt: {" + adaptLine + "span: 1s}", "adapt: {" + adaptLine + "span: 999ms}"},
		{"adapt: {" + adaptLine + "span: 1h}", "adapt: {" + adaptLine + "span: 1h1ms}"},
		{"adapt: {" + adaptLine + "smooth: 1s}", "adapt: {" + adaptLine + "smooth: 999ms}"},
		{"adapt: {" + adaptLine + "smooth: 24h}", "adapt: {" + adaptLine + "smooth: 24h1ms}"},
		{"adapt: {" + adaptLine + "hysteresis: 0.999}", "adapt: {" + adaptLine + "hysteresis: 1}"},
		{"adapt: {steps: 65535 below 1 per 1s, above: 65535}", "adapt: {steps: 9 below 1 per 1s, above: 65536}"},
		{"adapt: {steps: [1 below 1 per 3650d, 2 below 2 per 3650d], above: 0}", "adapt: {steps: [1 below 0 per 3650d, 2 below 2 per 3650d], above: 0}"},
		{"ban: {after: 65535 hits in 1s, for: 1s}", "ban: {after: 65536 hits in 1s, for: 1s}"},
		{"ban: {after: 1 hit in 1s, for: 1s, jitter: 1}", "ban: {after: 1 hit in 1s, for: 1s, jitter: 1.001}"},
		{"ban: {after: 1 hit in 1s, for: 1s, factor: 1000}", "ban: {after: 1 hit in 1s, for: 1s, factor: 1000.1}"},
		{"ban: {after: 1 hit in 1s, for: 10s, jitter: 0.5, max: 15s}", "ban: {after: 1 hit in 1s, for: 10s, jitter: 0.5, max: 14999ms}"},
		{
			"ban: {after: 1 hit in 1s, for: [" + strings.Repeat("1s, ", ban.MaxSteps-1) + "1s]}",
			"ban: {after: 1 hit in 1s, for: [" + strings.Repeat("1s, ", ban.MaxSteps) + "1s]}",
		},
	} {
		file := func(line string) []byte {
			return []byte(oneLimit("name: x", "key: client", "limit: 65535 per 1s", "algorithm: exact", line))
		}
		if _, err := Parse("r", file(c.within)); err != nil {
			t.Errorf("%s: %v", c.within, err)
		}
		_, err := Parse("r", file(c.beyond))
		if err == nil || strings.Contains(err.Error(), ":1:1: ") {
			t.Errorf("%s: %v; want an error with a position", c.beyond, err)
		}
	}
}

// TestEachAlgorithmJudges runs the same ten events, one a second, through files
// that differ in the algorithm: the named algorithm judges.
func TestEachAlgorithmJudges(t *testing.T) {
	for _, c := range []struct{ limit, algorithm, want string }{
		{"3 per 5s", "sliding", "AAADDAAADD"},
		{"3 per 5s", "exact", "AAADDAAADD"},
		{"3 per 5s", "two-bucket", "AAADDADADD"},
		{"3 per 5s burst 1", "gcra", "ADADADADAD"},
		{"1 per 5s burst 3", "token-bucket", "AAADDADDDD"},
		{"1 per 2s burst 2", "leaky-bucket", "AAADADADAD"},
		{"3 per 5s", "fixed", "AAADDAAADD"},
		{"3 per minute", "calendar", "AAADDDDAAA"}, // begins at second 53
		{"3 at once for 5s", "in-flight", "AAADDAAADD"},
	} {
		f := must.Get(Parse("r", []byte(oneLimit("name: x", "key: client", "limit: "+c.limit, "algorithm: "+c.algorithm))))(t)
		limiter := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
		var e match.Event
		e.SetString(match.Client, "192.0.2.1")
		got := ""
		for i := range 10 {
			answer := "D"
			if limiter.TakeAt(time.Unix(1_800_000_053+int64(i), 0), &e, 1).Allowed {
				answer = "A"
			}
			got += answer
		}
		if got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.limit, c.algorithm, got, c.want)
		}
	}
}

// TestAdaptWarning has two limits made one number.
func TestAdaptWarning(t *testing.T) {
	f := must.Get(Parse("r", []byte(oneLimit("name: x", "key: client", "limit: [5 per 1s, 60 per 1m]", "adapt: {steps: 9 below 1 per 1s, above: 1}"))))(t)
	want := "r:6:12: adapt: one number for the 2 limits of the rule, which have different spans"
	if got := fmt.Sprint(f.Warnings); got != want {
		t.Errorf("warnings are %s; want %s", got, want)
	}
}
