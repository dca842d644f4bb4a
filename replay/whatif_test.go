package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

func TestParseWhatIf(t *testing.T) {
	for _, c := range []struct {
		kind replay.Kind
		text string
		want replay.WhatIf
	}{
		{replay.Limit, "60/1m", replay.WhatIf{N: 60, Span: time.Minute}},
		{replay.Limit, "0/250ms", replay.WhatIf{Span: 250 * time.Millisecond}},
		{replay.Limit, "1000/day", replay.WhatIf{N: 1000, Per: ratelimit.PerDay}},
		{replay.Limit, "1000/month", replay.WhatIf{N: 1000, Per: ratelimit.PerMonth}},
		{replay.Limit, "60 per 1m", replay.WhatIf{N: 60, Span: time.Minute}},
		{replay.Limit, "100 per hour", replay.WhatIf{N: 100, Per: ratelimit.PerHour}},
		{replay.Ban, "100 per 5m:1h", replay.WhatIf{N: 100, Span: 5 * time.Minute, For: time.Hour}},
		{replay.Ban, "60/day:1h", replay.WhatIf{N: 60, Span: 24 * time.Hour, For: time.Hour}},
		{replay.Hot, "client:60 per minute", replay.WhatIf{N: 60, Span: time.Minute, Key: "client"}},
		{replay.Ban, "100/5m:1h", replay.WhatIf{N: 100, Span: 5 * time.Minute, For: time.Hour}},
		{replay.Hot, "200/1m", replay.WhatIf{N: 200, Span: time.Minute}},
		{replay.Hot, "client:200/1d", replay.WhatIf{N: 200, Span: 24 * time.Hour, Key: "client"}},
	} {
		c.want.Kind, c.want.Text = c.kind, c.text
		if got, err := replay.ParseWhatIf(c.kind, c.text); err != nil || got != c.want {
			t.Errorf("--%s %s: %+v, %v; want %+v", c.kind, c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		kind       replay.Kind
		text, want string
	}{
		{replay.Limit, "", "the span is missing"},
		{replay.Limit, "60", "the span is missing: must be N/SPAN or N/PERIOD, such as 60/1m or 1000/day"},
		{replay.Limit, "many/1m", `count "many": must be a whole number`},
		{replay.Limit, "-1/1m", `count "-1": must be a whole number`},
		{replay.Limit, "99999999999999999999/1m", "must be at most 18446744073709551615"},
		{replay.Limit, "60/1", "no unit"},
		{replay.Limit, "60/-1m", "duration"},
		{replay.Limit, "60/1us", "whole milliseconds"},
		{replay.Limit, "60/1m:1h", "duration"},
		{replay.Limit, "60/days", "duration"},
		{replay.Limit, "60/1m burst 5", `must be "N per DURATION"`},
		{replay.Ban, "60/month:1h", "a month has no fixed length"},
		{replay.Hot, "60/month", "a month has no fixed length"},
		{replay.Ban, "100/5m", "the length of the ban is missing: must be N/SPAN:DURATION"},
		{replay.Ban, "100/5m:", "duration"},
		{replay.Ban, "100/5m:soon", "duration"},
		{replay.Hot, ":5/1s", "the field before ':' is empty"},
		{replay.Hot, "client:5", "the span is missing: must be N/SPAN or KEY:N/SPAN"},
	} {
		if got, err := replay.ParseWhatIf(c.kind, c.text); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), fmt.Sprintf("--%s: %q", c.kind, c.text)) {
			t.Errorf("--%s %s: %+v, %v; want %q", c.kind, c.text, got, err, c.want)
		}
	}
}

// FuzzParseWhatIf writes what was parsed in its shortest form and parses that again: it must mean the same. A text that
// cannot be parsed is quoted in the error.
func FuzzParseWhatIf(f *testing.F) {
	for _, text := range []string{"60/1m", "100/5m:1h", "client:200/1m", "0/1ms", "5/1.5s", "1_0/1d", "1000/month", "/", ":", "18446744073709551615/3650d:1w"} {
		for kind := range uint8(3) {
			f.Add(kind, text)
		}
	}
	f.Fuzz(func(t *testing.T, number uint8, text string) {
		kind := []replay.Kind{replay.Limit, replay.Ban, replay.Hot}[number%3]
		w, err := replay.ParseWhatIf(kind, text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("--%s: %q: ", kind, text)) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		span := rulevalue.FormatDuration(w.Span)
		if w.Per != 0 {
			span = w.Per.String()
		}
		short := fmt.Sprintf("%d/%s", w.N, span)
		if kind == replay.Ban {
			short += ":" + rulevalue.FormatDuration(w.For)
		} else if w.Key != "" {
			short = w.Key + ":" + short
		}
		again, err := replay.ParseWhatIf(kind, short)
		w.Text, again.Text = "", ""
		if err != nil || again != w || kind != replay.Hot && w.Key != "" || (kind == replay.Ban) != (w.For > 0) || (w.Span > 0) == (w.Per != 0) || kind != replay.Limit && w.Per != 0 {
			t.Errorf("%q is %+v, but %q is %+v, %v", text, w, short, again, err)
		}
	})
}
