package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// aboutEvents returns the part of a report that is about the events and not about the
// lines.
func aboutEvents(t testing.TB, r *replay.Report) map[string]any {
	t.Helper()
	data := must.Get(json.Marshal(r))(t)
	var all map[string]any
	must.Do(t, json.Unmarshal(data, &all))
	for _, name := range []string{"files", "lines", "parsed", "skipped", "bad", "bad_lines", "elapsed_seconds", "cut", "assumed_years"} {
		delete(all, name)
	}
	return all
}

func mustWhatIf(t testing.TB, kind replay.Kind, text string) replay.WhatIf {
	t.Helper()
	w := must.Get(replay.ParseWhatIf(kind, text))(t)
	return w
}

// TestCutIsTheLogWithoutTheOtherLines compares the replay of a cut with that of a log without the lines outside of it.
func TestCutIsTheLogWithoutTheOtherLines(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 400, Duration: time.Hour})
		cut, has := randomCut(t, rnd, log)
		var kept bytes.Buffer
		for line := range bytes.Lines(log) {
			if has(line) {
				kept.Write(line)
			}
		}
		c := replay.Config{
			Format: "clf", Cores: 1 + rnd.IntN(4), Algorithm: pick(rnd, ratelimit.Sliding, ratelimit.GCRA),
			WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Limit, "3/10s"), mustWhatIf(t, replay.Ban, "5/1m:10m"), mustWhatIf(t, replay.Hot, "path:4/1m")},
		}
		c.Files = []string{writeFile(t, "kept.log", kept.Bytes())}
		want := mustRun(t, c)
		c.Files, c.Cut = []string{writeFile(t, "whole.log", log)}, cut
		got, err := replay.Run(t.Context(), c)
		if want.Events == 0 {
			if nothing, ok := errors.AsType[*replay.InputError](err); !ok || !strings.Contains(nothing.Error(), " in the cut; the log is from ") {
				t.Errorf("%+v: no event is left, and the error is %v", cut, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", cut, err)
		}
		if a, b := aboutEvents(t, got), aboutEvents(t, want); !reflect.DeepEqual(a, b) {
			t.Errorf("%+v: the report is\n%v\nwant\n%v", cut, a, b)
		}
		if whole := reflect.DeepEqual(cut, replay.Cut{}); got.Lines != 400 || whole != (got.Cut == nil) || !whole && got.Cut.LeftOut+got.Events != got.Parsed {
			t.Errorf("%d lines, %d parsed, %d events, cut %+v", got.Lines, got.Parsed, got.Events, got.Cut)
		}
	}
}

// randomCut returns a cut of log, and whether a line is in it.
func randomCut(t testing.TB, rnd *rand.Rand, log []byte) (cut replay.Cut, has func(line []byte) bool) {
	t.Helper()
	timeOf := func(line []byte) (at time.Time, m []string) {
		if m = clfPattern.FindStringSubmatch(string(line)); m == nil {
			return at, nil
		}
		at = must.Get(time.Parse("02/Jan/2006:15:04:05 -0700", m[2]))(t)
		return at, m
	}
	var end time.Time
	for line := range bytes.Lines(log) {
		if at, m := timeOf(line); m != nil && at.After(end) {
			end = at
		}
	}
	bound := func(b *replay.Bound, before time.Duration) (at time.Time) {
		at = end.Add(-before)
		text := pick(rnd, at.Format(time.RFC3339), at.UTC().Format(time.DateTime), "-"+before.String())
		var err error
		if *b, err = replay.ParseBound(text, nil); err != nil {
			t.Fatal(err)
		}
		return at
	}
	since, until := time.Time{}, end.Add(time.Hour)
	if rnd.IntN(3) > 0 {
		since = bound(&cut.Since, time.Duration(1800+rnd.IntN(2000))*time.Second)
	}
	if rnd.IntN(3) > 0 {
		until = bound(&cut.Until, time.Duration(1+rnd.IntN(1799))*time.Second)
	}
	condition, holds := "", func([]string) bool { return true }
	switch rnd.IntN(4) {
	case 0:
		condition, holds = "status=2xx", func(m []string) bool { return m[4][0] == '2' }
	case 1:
		condition, holds = "protocol=HTTP/2.*", func(m []string) bool { return strings.Contains(m[3], "HTTP/2.") }
	case 2:
		condition, holds = "method=GET", func(m []string) bool { return strings.HasPrefix(m[3], "GET ") }
	}
	if condition != "" {
		cut.Where = []string{condition}
	}
	return cut, func(line []byte) bool {
		at, m := timeOf(line)
		return m != nil && !at.Before(since) && at.Before(until) && holds(m)
	}
}

// TestCutOfYearlessLog cuts a log whose times get their year after all of it is read.
func TestCutOfYearlessLog(t *testing.T) {
	var log strings.Builder
	for _, stamp := range []string{"Dec 30 00:00:00", "Dec 31 23:59:59", "Jan  1 00:00:00", "Jan  1 00:00:01", "Jan  2 00:00:00"} {
		log.WriteString(sshd(stamp))
	}
	for bounds, want := range map[[2]string]int64{
		{"2021-01-01", ""}: 3, {"", "2021-01-01"}: 2, {"-1d", ""}: 3, {"2020-12-31", "-24h"}: 1, {"-48h", "-23h"}: 3,
	} {
		var cut replay.Cut
		for i, b := range []*replay.Bound{&cut.Since, &cut.Until} {
			if bounds[i] == "" {
				continue
			}
			var err error
			if *b, err = replay.ParseBound(bounds[i], nil); err != nil {
				t.Fatal(err)
			}
		}
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "auth.log", []byte(log.String()))}, Year: 2020, Cut: cut})
		if r.Events != want || r.Cut.LeftOut != 5-want {
			t.Errorf("%q: %d events, %d left out, want %d events", bounds, r.Events, r.Cut.LeftOut, want)
		}
	}
}

// TestCutLeavesNoFieldBehind has a rule about a field that only events outside the cut have.
func TestCutLeavesNoFieldBehind(t *testing.T) {
	log := "1,a,u\n2,b,\n3,c,\n"
	c := replay.Config{Files: []string{writeFile(t, "log", []byte(log))}, Format: "csv:time=1@s,client=2,user=3"}
	c.WhatIfs = []replay.WhatIf{mustWhatIf(t, replay.Limit, "1/1s"), mustWhatIf(t, replay.Hot, "user:1/1s")}
	if r := mustRun(t, c); len(r.Problems) != 0 || len(r.Rules) != 2 {
		t.Fatalf("without a cut: problems %q", r.Problems)
	}
	c.Cut.Since = replay.Bound{At: time.Unix(2, 0)}
	r := must.Get(replay.Run(t.Context(), c))(t)
	if len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "--hot user:1/1s: no event has the field user") || len(r.Rules) != 1 || r.Keys != 2 {
		t.Errorf("problems %q, %d rules, %d keys", r.Problems, len(r.Rules), r.Keys)
	}
}

func TestParseBound(t *testing.T) {
	vienna := time.FixedZone("CET", 3600)
	for text, want := range map[string]string{
		"2024-01-29T10:05:07Z":       "2024-01-29T10:05:07Z",
		"2024-01-29T10:05:07+05:00":  "2024-01-29T05:05:07Z",
		"2024-01-29T10:05:07":        "2024-01-29T09:05:07Z",
		"2024-01-29T10:05:07.25":     "2024-01-29T09:05:07.25Z",
		"2024-01-29 10:05:07":        "2024-01-29T09:05:07Z",
		"2024-01-29 10:05:07+00:00":  "2024-01-29T10:05:07Z",
		"2024-01-29 10:05":           "2024-01-29T09:05:00Z",
		"2024-01-29":                 "2024-01-28T23:00:00Z",
		"29/Jan/2024:10:05:00 +0500": "2024-01-29T05:05:00Z",
	} {
		b, err := replay.ParseBound(text, vienna)
		if got := b.At.UTC().Format(time.RFC3339Nano); err != nil || b.BeforeEnd != 0 || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"-2h": 2 * time.Hour, "-7d": 7 * 24 * time.Hour, "-1h30m": 90 * time.Minute} {
		if b, err := replay.ParseBound(text, nil); err != nil || b != (replay.Bound{BeforeEnd: want}) {
			t.Errorf("%q: %+v, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{
		"": "must be a time such as", "yesterday": "must be a time such as", "2024-02-30": "must be a time such as",
		"-": "duration", "-2": "did you mean 2s?", "--2h": "duration", "1800-01-01": "must be of a year from 1900 to 2149", "2h": "must be a time such as",
	} {
		if b, err := replay.ParseBound(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, b, err, want)
		}
	}
}

func TestWrongCuts(t *testing.T) {
	at := func(sec int64) replay.Bound { return replay.Bound{At: time.Unix(sec, 0)} }
	before := func(d time.Duration) replay.Bound { return replay.Bound{BeforeEnd: d} }
	for _, c := range []replay.Cut{
		{Since: at(2), Until: at(2)},
		{Since: at(3), Until: at(2)},
		{Since: before(time.Hour), Until: before(time.Hour)},
		{Since: before(-time.Hour)},
		{Until: replay.Bound{At: time.Unix(1, 0), BeforeEnd: time.Hour}},
	} {
		if err := (replay.Config{Files: []string{"-"}, Cut: c}).Validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	for condition, want := range map[string]string{
		"status": "FIELD=PATTERN", "=5xx": "FIELD=PATTERN", "status=": "FIELD=PATTERN", "status=6": "must be a status",
		"path=login": "must be a pattern", "client=x": "must be an address",
	} {
		c := replay.Config{Files: []string{"-"}, Cut: replay.Cut{Where: []string{condition}}}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", condition, err, want)
		}
	}
}

// FuzzParseBound accepts only texts with a time.
func FuzzParseBound(f *testing.F) {
	for _, text := range []string{"2024-01-29T10:05:07Z", "2024-01-29", "-2h", "29/Jan/2024:10:05:00 +0500", "-", "2024-01-29 10:05:07.5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := replay.ParseBound(text, nil)
		if err != nil {
			return
		}
		if (b.BeforeEnd > 0) == !b.At.IsZero() {
			t.Fatalf("%q: %+v: must be a time or a distance", text, b)
		}
		if b.BeforeEnd > 0 {
			return
		}
		again, err := replay.ParseBound(b.At.Format(time.RFC3339Nano), nil)
		if err != nil || !again.At.Equal(b.At) {
			t.Fatalf("%q: %v, and written again %v, %v", text, b.At, again.At, err)
		}
	})
}
