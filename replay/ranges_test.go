package replay_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

const rangeFormat = "csv:time=1@s,client=2,path=3,object=3"

// A coarseEvent is an event of a log whose times are whole seconds.
type coarseEvent struct {
	second       int64
	client, path string
}

// coarseLog returns events of a few clients, some of them near a limit of n in span
// seconds, in bursts and steadily, with pauses.
func coarseLog(rnd *rand.Rand, events, n int, span int64) []coarseEvent {
	log := make([]coarseEvent, events)
	at := float64(1_700_000_000 + rnd.IntN(1000))
	clients := 1 + rnd.IntN(3)
	rate := float64(n*clients) / float64(span) * (0.7 + rnd.Float64()) // events a second
	for i := range log {
		switch {
		case rnd.IntN(8) == 0: // a burst
		case rnd.IntN(150) == 0: // a pause
			at += rnd.Float64() * 4 * float64(span)
		default:
			at += rnd.ExpFloat64() / rate
		}
		log[i] = coarseEvent{int64(at), fmt.Sprint("c", rnd.IntN(clients)), fmt.Sprint("/", rnd.IntN(2))}
	}
	return log
}

// assigned returns the lines of a log with fractions: some at random, some of the
// worst ones. Within a second they do not go down.
func assigned(rnd *rand.Rand, log []coarseEvent, kind int) string {
	fractions := make([]int, len(log))
	for i := range log {
		switch kind {
		case 0: // none
		case 1:
			fractions[i] = 999_999
		case 2: // each second its own
			fractions[i] = rand.New(rand.NewPCG(uint64(log[i].second), 1)).IntN(1_000_000)
		case 3: // late and early in turns
			fractions[i] = int(log[i].second%2) * 999_999
		case 4:
			fractions[i] = rnd.IntN(2) * 999_999
		default:
			fractions[i] = rnd.IntN(1_000_000)
		}
	}
	for from := 0; from < len(log); {
		to := from
		for to < len(log) && log[to].second == log[from].second {
			to++
		}
		slices.Sort(fractions[from:to])
		from = to
	}
	var b strings.Builder
	for i, ev := range log {
		if fractions[i] < 0 {
			panic("negative")
		}
		fmt.Fprintf(&b, "%d.%06d,%s,%s\n", ev.second, fractions[i], ev.client, ev.path)
	}
	return b.String()
}

// refusedBy returns how often each limit and ban refuses by itself, and the ranges.
func refusedBy(r *replay.Report) (refused []int64, ranges []*replay.Range) {
	for _, rule := range r.Rules {
		n := rule.Refused
		switch {
		case rule.RefusedByRule != nil:
			n = rule.RefusedByRule
		case rule.WouldRefuse != nil:
			n = rule.WouldRefuse
		}
		refused, ranges = append(refused, *n), append(ranges, rule.RefusedRange)
	}
	return refused, ranges
}

// checkRanges replays a log of seconds, and then with fractions: what is refused must
// be within the ranges that the first report has. It returns the sum of their widths
// and of what was refused.
func checkRanges(t *testing.T, rnd *rand.Rand, c replay.Config, log []coarseEvent, assignments int) (width, total int64) {
	t.Helper()
	replayed := func(text string) ([]int64, []*replay.Range) {
		c.Files, c.Stdin, c.Format, c.Cores = []string{"-"}, strings.NewReader(text), rangeFormat, 2
		r, err := replay.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return refusedBy(r)
	}
	floored := strings.ReplaceAll(assigned(rnd, log, 0), ".000000", "")
	at, ranges := replayed(floored)
	for kind := range assignments {
		refused := at
		if kind > 0 {
			refused, _ = replayed(assigned(rnd, log, kind))
		}
		for i, n := range refused {
			if ranges[i] == nil {
				t.Fatal("there is no range")
			}
			if n < ranges[i].Least || n > ranges[i].Most {
				t.Fatalf("rule %d, assignment %d: %d refused; the range is %+v (%d of %d events at full seconds)", i, kind, n, *ranges[i], at[i], len(log))
			}
		}
	}
	for i, r := range ranges {
		width, total = width+r.Most-r.Least, total+at[i]
	}
	return width, total
}

// TestRangesOfWhatIfs has random logs of seconds near the limit under every algorithm,
// with fractions at random and at their worst: no assignment refuses less or more
// than the range says.
func TestRangesOfWhatIfs(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 12
	if testing.Short() || raceDetector {
		rounds = 3
	}
	for _, name := range replay.Algorithms() {
		algorithm, err := ratelimit.AlgorithmNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		var width, total int64
		for range rounds {
			n, span := pick(rnd, 1, 3, 10, 60, 130, 300), pick[int64](rnd, 1, 2, 7, 10, 60, 3600)
			text := fmt.Sprintf("%d/%ds", n, span)
			if algorithm == ratelimit.Calendar {
				text, span = fmt.Sprintf("%d/minute", n), 60
			}
			c := replay.Config{Algorithm: algorithm, CountRefused: algorithm != ratelimit.InFlight && rnd.IntN(3) == 0, WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "%s", text)}, FileOrder: rnd.IntN(5) == 0}
			w, all := checkRanges(t, rnd, c, coarseLog(rnd, pick(rnd, 30, 300, 1200), n, span), 8)
			if t.Failed() {
				t.Fatalf("%s %s, refused count: %v", name, text, c.CountRefused)
			}
			width, total = width+w, total+all
		}
		t.Logf("%s: ranges are %d wide, %d are refused", name, width, total)
	}
}

// TestRangesOfBans does the same for bans.
func TestRangesOfBans(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 80
	if testing.Short() || raceDetector {
		rounds = 15
	}
	var width, total int64
	for range rounds {
		n, span := pick(rnd, 0, 1, 3, 10, 60), pick[int64](rnd, 1, 2, 7, 10, 60)
		c := replay.Config{WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "%d/%ds:%ds", n, span, pick(rnd, 1, 5, 60, 600))}}
		w, all := checkRanges(t, rnd, c, coarseLog(rnd, pick(rnd, 30, 300, 1000), n+1, span), 8)
		if t.Failed() {
			t.Fatal(c.WhatIfs[0].Text)
		}
		width, total = width+w, total+all
	}
	t.Logf("ranges are %d wide, %d are refused", width, total)
}

// TestRangesOfRules does the same for rules of a file, alone and together.
func TestRangesOfRules(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 100
	if testing.Short() || raceDetector {
		rounds = 15
	}
	var width, total int64
	for range rounds {
		n, span := pick(rnd, 1, 3, 10, 60, 140), pick[int64](rnd, 2, 7, 10, 60)
		var text strings.Builder
		text.WriteString("version: 1\nlimits:\n")
		for i := range 1 + rnd.IntN(3) {
			limit := fmt.Sprintf("%d per %ds", n, span)
			algorithm := pick(rnd, "sliding", "exact", "weighted", "two-bucket", "fixed", "token-bucket", "calendar")
			if algorithm == "calendar" {
				limit = fmt.Sprintf("%d per minute", n)
			}
			if algorithm == "token-bucket" && rnd.IntN(2) == 0 {
				limit += fmt.Sprint(" burst ", 1+rnd.IntN(20))
			} else if rnd.IntN(3) == 0 && algorithm != "calendar" {
				limit = fmt.Sprintf("[%s, %d per %ds]", limit, n*3, span*4)
			}
			fmt.Fprintf(&text, "- {name: r%d, key: %s, algorithm: %s, limit: %s, mode: %s, count_refused: %v%s%s}\n", i,
				pick(rnd, "client", "client", "path", "[client, path]"), algorithm, limit, pick(rnd, "enforce", "enforce", "enforce", "shadow"),
				rnd.IntN(4) == 0, pick(rnd, "", "", ", when: {path: /1}"),
				pick(rnd, "", ", ban: {after: 5 refusals in 20s, for: 2m}", ", ban: {after: 2 refusals in 1m, for: 90s, factor: 2, max: 1h}",
					", ban: {after: 0 refusals in 1s, for: [1s, 1m, 10m], remember: 2m}", fmt.Sprintf(", ban: {after: %d hits in 10s, for: 5m, extend: true, jitter: 0.5}", 2*n)))
		}
		if rnd.IntN(2) == 0 {
			fmt.Fprintf(&text, "bans:\n- {name: b, key: client, after: %d hits in %ds, for: 3m}\n", n, span)
		}
		c := replay.Config{Rules: mustRules(t, text.String())}
		w, all := checkRanges(t, rnd, c, coarseLog(rnd, pick(rnd, 30, 300, 600), n, span), 7)
		if t.Failed() {
			t.Fatal(text.String())
		}
		width, total = width+w, total+all
	}
	t.Logf("ranges are %d wide, %d are refused", width, total)
}

// TestRangesAreUseful has clients that send a little more than a limit allows, each of
// the fractions unknown: the range is a few percent of what is refused.
func TestRangesAreUseful(t *testing.T) {
	rnd := randtest.New(t)
	var log []coarseEvent
	for i := range 24_000 {
		log = append(log, coarseEvent{1_700_000_000 + int64(float64(i)/20), fmt.Sprint("c", i%10), "/"}) // 120 a minute each
	}
	for _, c := range []struct {
		rule  string
		parts int64 // the range is at most a part of what is refused
	}{
		{"limit: 100 per 1m", 10},
		{"limit: 1000 per 10m", 10},
		{"limit: 100 per 1m, algorithm: exact", 10},
		{"limit: 100 per 1m, algorithm: weighted", 10},
		{"limit: 100 per 1m, algorithm: two-bucket", 10},
		{"limit: 100 per 1m, algorithm: gcra", 10},
		{"limit: 100 per 1m, algorithm: fixed", 10},
		{"limit: 100 per 1m, ban: {after: 20 refusals in 5m, for: 10m}", 10},
		{"limit: 100 per 1m, ban: {after: 150 hits in 90s, for: 10m, factor: 2}", 10},
	} {
		file := mustRules(t, "version: 1\nlimits:\n- {name: x, key: client, "+c.rule+"}\n")
		width, total := checkRanges(t, rnd, replay.Config{Rules: file}, log, 3)
		t.Logf("%s: %d wide, %d refused", c.rule, width, total)
		if total == 0 || width*c.parts > total {
			t.Errorf("%s: the range is %d wide, and %d are refused", c.rule, width, total)
		}
	}
}

// TestRangeOfManyBans has a client that is banned again and again: the stack does not
// grow with the number of its bans.
func TestRangeOfManyBans(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20))
	const bans = 40_000
	var log strings.Builder
	for i := range bans {
		fmt.Fprintf(&log, "%d,c,/\n", 1_700_000_000+4*i)
	}
	r := mustRun(t, replay.Config{
		Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: rangeFormat,
		WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "0/1s:3s")},
	})
	if got := r.Rules[0].RefusedRange; got == nil || got.Most != bans || got.Least < bans-1 {
		t.Errorf("range %+v, want all of %d", got, bans)
	}
}

// TestNoRange has logs and settings for which nothing is unknown, or no range is reported.
func TestNoRange(t *testing.T) {
	for name, c := range map[string]replay.Config{
		"nanoseconds": {Stdin: strings.NewReader("1.000000001,a,/\n")},
		"floored":     {Stdin: strings.NewReader("1,a,/\n"), Resolution: time.Second},
	} {
		c.Files, c.Format, c.WhatIfs = []string{"-"}, rangeFormat, []replay.WhatIf{whatIf(t, replay.Limit, "1/1m")}
		if r := mustRun(t, c); r.Rules[0].RefusedRange != nil {
			t.Errorf("%s: range %+v", name, *r.Rules[0].RefusedRange)
		}
	}
}
