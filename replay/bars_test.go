package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// barMillis are the lengths of bars of a millisecond and more, as they are documented.
var barMillis = []int64{
	1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1800_000, 3600_000, 3 * 3600_000, 6 * 3600_000, 12 * 3600_000,
	86400_000, 5 * 86400_000, 10 * 86400_000, 50 * 86400_000, 100 * 86400_000, 500 * 86400_000,
}

// A timedEvent is an event of a generated log in which all times differ.
type timedEvent struct {
	millis int64
	client string
}

// timedLog returns events of few clients, in bursts and with pauses of any length.
func timedLog(rnd *rand.Rand, n int) (events []timedEvent, log []byte) {
	at := rnd.Int64N(2_000_000_000_000) - 500_000_000_000
	for range n {
		at += 1 + rnd.Int64N(pick(rnd, int64(5), 500, 2000))
		if rnd.IntN(200) == 0 {
			at += rnd.Int64N(pick(rnd, int64(10_000), 1_000_000, 1_000_000_000))
		}
		e := timedEvent{at, fmt.Sprintf("c%d", rnd.IntN(1+rnd.IntN(6)))}
		events = append(events, e)
		log = fmt.Appendf(log, "%d,%s\n", e.millis, e.client)
	}
	return events, log
}

// barsOf counts the events that a function selects, in bars of that length.
func barsOf(events []timedEvent, width int64, selects func(i int) bool) []int64 {
	first := barOf(events[0].millis, width)
	counts := make([]int64, barOf(events[len(events)-1].millis, width)-first+1)
	for i, e := range events {
		if selects(i) {
			counts[barOf(e.millis, width)-first]++
		}
	}
	return counts
}

// barOf returns the number of the bar of a time, counted from 1970.
func barOf(millis, width int64) int64 { return (millis - ((millis%width)+width)%width) / width }

// TestTimeline compares the bars with bars counted by the test, from the decisions and the list of bans: for any number of
// cores, and whether the events are judged at once or while they are read.
func TestTimeline(t *testing.T) {
	rnd := randtest.New(t)
	refused, banned, widths := int64(0), int64(0), map[float64]bool{}
	for range 40 {
		events, log := timedLog(rnd, 20+rnd.IntN(1500))
		c := replay.Config{Files: []string{writeFile(t, "log", log)}, Format: "csv:time=1@ms,client=2", Cores: 1 + rnd.IntN(3)}
		switch rnd.IntN(3) {
		case 0:
			c.WhatIfs = []replay.WhatIf{whatIf(t, replay.Limit, "%d/10s", 1+rnd.IntN(8))}
		case 1:
			c.WhatIfs = []replay.WhatIf{whatIf(t, replay.Ban, "%d/10s:%ds", 1+rnd.IntN(8), 1+rnd.IntN(90))}
		case 2:
			c.Rules = mustRules(t, fmt.Sprintf("version: 1\nlimits: [{name: a, key: client, limit: %d per 10s, ban: {after: %d refusals in 1m, for: 40s}}]\n"+
				"bans: [{name: b, key: client, after: %d hits in 1m, for: 1m}]", 1+rnd.IntN(5), 1+rnd.IntN(5), 5+rnd.IntN(30)))
		}
		if rnd.IntN(2) == 0 {
			c.Lateness = time.Second
			c.InPieces(pick(rnd, 1, 20, 300))
		}
		r, decisions := replayed(t, c)
		width := widthFor(events)
		all := r.Timeline
		widths[all.BarSeconds] = true
		if want := barsOf(events, width, func(int) bool { return true }); all.BarSeconds != float64(width)/1000 || !slices.Equal(all.Events, want) {
			t.Fatalf("bars of %v s: %v\nwant bars of %d ms: %v", all.BarSeconds, all.Events, width, want)
		}
		if start := events[0].millis; all.Start.UnixMilli() > start || all.Start.UnixMilli()+width <= start || all.Start.UnixMilli()%width != 0 {
			t.Errorf("the first bar of %d ms begins at %s, the first event was at %d", width, all.Start, start)
		}
		want := barsOf(events, width, func(i int) bool { return decisions[i] == 'D' })
		wantBanned := barsOf(events, width, func(i int) bool { return decisions[i] == 'D' && isBanned(r, events[i]) })
		if !slices.Equal(all.Refused, want) || !slices.Equal(all.Banned, wantBanned) {
			t.Fatalf("refused %v, banned %v\nwant %v, %v", all.Refused, all.Banned, want, wantBanned)
		}
		checkOwnBars(t, r)
		for i := range want {
			refused, banned = refused+want[i]-wantBanned[i], banned+wantBanned[i]
		}
	}
	if refused == 0 || banned == 0 || len(widths) < 4 {
		t.Errorf("%d refused by limits, %d by bans, bars of %v s: the test shows nothing", refused, banned, widths)
	}
}

// checkOwnBars compares the bars of each rule, which enforces, with its numbers and with the bars of all rules.
func checkOwnBars(t *testing.T, r *replay.Report) {
	t.Helper()
	sums := make([]int64, len(r.Timeline.Events))
	for _, rule := range r.Rules {
		sum := int64(0)
		for i, n := range rule.Timeline.Refused {
			sum += n
			sums[i] += n
			if n > r.Timeline.Refused[i] || rule.Timeline.Banned[i] > min(n, r.Timeline.Banned[i]) {
				t.Errorf("%s, bar %d: %d refused, %d banned, more than all rules", rule.Name, i, n, rule.Timeline.Banned[i])
			}
		}
		if sum != *rule.Refused {
			t.Errorf("%s: %d refused in all bars, %d in all", rule.Name, sum, *rule.Refused)
		}
	}
	for i, n := range sums {
		if n < r.Timeline.Refused[i] {
			t.Errorf("bar %d: %d refused by the rules, %d by all", i, n, r.Timeline.Refused[i])
		}
	}
}

// widthFor returns the length of the bars for events of a log of milliseconds.
func widthFor(events []timedEvent) int64 {
	unit := int64(1000) // the precision of the log
	for _, e := range events {
		for e.millis%unit != 0 {
			unit /= 10
		}
	}
	for _, w := range barMillis {
		if w >= unit && barOf(events[len(events)-1].millis, w)-barOf(events[0].millis, w) < 300 {
			return w
		}
	}
	panic("no length is long enough")
}

// isBanned reports whether a ban in the report held at an event, or began with it.
func isBanned(r *replay.Report, e timedEvent) bool {
	return slices.ContainsFunc(r.Rules, func(rule replay.RuleReport) bool {
		return slices.ContainsFunc(rule.BanList, func(b replay.BanReport) bool {
			return b.Values()[0] == e.client && b.Start.UnixMilli() <= e.millis && e.millis < b.End.UnixMilli()
		})
	})
}

// TestTimelineOfSeveral counts an event as refused in the bars of all what-ifs if at least one of them refused it, and as
// banned if a ban did.
func TestTimelineOfSeveral(t *testing.T) {
	log := "0,a\n0,a\n0,a\n0,b\n7,a\n7,a\n7,a\n7,a\n7,a\n"
	r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", []byte(log))}, Format: smallFormat, WhatIfs: []replay.WhatIf{
		whatIf(t, replay.Limit, "2/1s"), whatIf(t, replay.Ban, "4/1s:1h"), whatIf(t, replay.Hot, "client:2/1s"),
	}})
	data := must.Get(json.Marshal([]any{r.Timeline, r.Rules[0].Timeline, r.Rules[1].Timeline, r.Rules[2].Timeline}))(t)
	want := `[{"start":0,"bar_seconds":1,"events":[4,0,0,0,0,0,0,5],"refused":[1,0,0,0,0,0,0,3],"banned":[0,0,0,0,0,0,0,1]},` +
		`{"refused":[1,0,0,0,0,0,0,3],"banned":[0,0,0,0,0,0,0,0]},{"refused":[0,0,0,0,0,0,0,1],"banned":[0,0,0,0,0,0,0,1]},null]`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

// TestTextBars has at most 76 bars in the plain report, with the height of the highest.
func TestTextBars(t *testing.T) {
	for n, want := range map[int]string{
		2: "  " + strings.Repeat("█", 76) + "\n  └22:13:20                             └22:13:21\n  each bar is 1s; the highest has 1 events", 76: "  each bar is 1s;", 77: "  each bar is 5s; the highest has 5 events", 3601: "  each bar is 1m0s; the highest has 60 events",
		7200: "  each bar is 5m0s; the highest has 300 events",
	} {
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", smallLog(n))}, Format: smallFormat})
		var out bytes.Buffer
		must.Do(t, r.WriteText(&out, replay.TextStyle{}))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%d events, one a second: no %q in\n%s", n, want, out.Bytes())
		}
	}
}

// TestTextPicture has a row of the share refused, and the times of the bars, in the width of the
// terminal.
func TestTextPicture(t *testing.T) {
	r := mustRun(t, replay.Config{
		Files: []string{writeFile(t, "log", []byte("0,a\n0,a\n7200,b\n7201,b\n7202,b\n7203,b\n10800,c\n"))}, Format: smallFormat,
		WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "1/1h")},
	})
	for width, want := range map[int][]string{
		0: {
			"▄▄                                              ██                      ▂▂",
			"▄▄                                              ▆▆",
			"└00:00      └00:30      └01:00      └01:30      └02:00      └02:30",
		},
		120: {
			"▄▄▄                                                                     ███                                 ▂▂▂",
			"▄▄▄                                                                     ▆▆▆",
			"└00:00      └00:20      └00:40      └01:00      └01:20      └01:40      └02:00      └02:20      └02:40",
		},
	} {
		want = append(want, "each bar is 5m0s; the highest has 4 events", "the second row is the share of them that was refused, at most 75.0 %", "")
		var out bytes.Buffer
		must.Do(t, r.WriteText(&out, replay.TextStyle{Width: width}))
		if picture := "Events over time\n  " + strings.Join(want, "\n  "); !strings.Contains(out.String(), strings.TrimSuffix(picture, "  ")) {
			t.Errorf("width %d: no\n%s\nin\n%s", width, picture, out.Bytes())
		}
	}
}

// TestKeysAbove sets each N in the report, or some of them, as a limit: the exact algorithm refuses as many keys at least
// once as the report has for N, and another number for N-1.
func TestKeysAbove(t *testing.T) {
	rnd := randtest.New(t)
	checked := 0
	for range 20 {
		_, log := timedLog(rnd, 20+rnd.IntN(800))
		c := replay.Config{Files: []string{writeFile(t, "log", log)}, Format: "csv:time=1@ms,client=2", Algorithm: ratelimit.Exact}
		limits := mustRun(t, c).SuggestedLimits
		limit := limits[rnd.IntN(len(limits))]
		step := rnd.IntN(len(limit.KeysAbove))
		n, above := limit.KeysAbove[step][0], limit.KeysAbove[step][1]
		refusedAt := func(n int64) int64 {
			c.WhatIfs = []replay.WhatIf{whatIf(t, replay.Limit, "%d/%s", n, limit.Span)}
			return *mustRun(t, c).Rules[0].KeysRefused
		}
		if got := refusedAt(n); got != above {
			t.Errorf("a limit of %d/%s refuses %d keys, want %d as in the report", n, limit.Span, got, above)
		}
		if n > 1 {
			checked++
			if got := refusedAt(n - 1); got <= above {
				t.Errorf("a limit of %d/%s refuses %d keys, and one more %d", n-1, limit.Span, got, above)
			}
		}
		if last := limit.KeysAbove[len(limit.KeysAbove)-1]; last != [2]int64{limit.Max, 0} {
			t.Errorf("the last step is %v, the largest peak is %d", last, limit.Max)
		}
	}
	if checked == 0 {
		t.Error("all peaks are 1: the test shows nothing")
	}
}

// TestKeysAboveIsBounded has 300 keys with 1 to 300 events: 200 peaks are reported, and each is correct.
func TestKeysAboveIsBounded(t *testing.T) {
	var log bytes.Buffer
	for key := range 300 {
		for range key + 1 {
			fmt.Fprintf(&log, "0,%d\n", key)
		}
	}
	c := replay.Config{Files: []string{writeFile(t, "log", log.Bytes())}, Format: smallFormat}
	for _, limit := range mustRun(t, c).SuggestedLimits {
		if len(limit.KeysAbove) != 200 || limit.KeysAbove[0] != [2]int64{1, 299} || limit.KeysAbove[199] != [2]int64{300, 0} {
			t.Errorf("%d steps, from %v to %v", len(limit.KeysAbove), limit.KeysAbove[0], limit.KeysAbove[len(limit.KeysAbove)-1])
		}
		for _, step := range limit.KeysAbove {
			if step[0]+step[1] != 300 {
				t.Fatalf("step %v: %d keys have more events", step, 300-step[0])
			}
		}
	}
}
