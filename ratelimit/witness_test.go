package ratelimit_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A claim is the promise of a limit for any arrivals: at most a certain amount in a window of its own kind.
type claim struct {
	extent
	span   int64
	number func(t int64) int64 // of ofCalendar: which window t is in
	most   uint64
}

// extent is what a claim is about.
type extent uint8

const (
	trueWindow extent = iota // every (t-span, t]
	fromFirst                // one that begins with the first event after the previous one
	ofCalendar               // one between two edges of the calendar
)

// A witness has the allowed events of one key, each at the time of its decision. It adds up costs, without slots, levels or
// bounded logs.
type witness struct {
	newest  int64
	allowed []allowedTake
	gone    int // events that were dropped before these
	sums    []windowSum
	turns   *witness // the same events at their turns, of a leaky bucket

	refused int64 // when the last event, which was refused, may come again; or 0
}

type allowedTake struct {
	t    int64
	cost uint64
}

// A windowSum is the content of the window of a claim: the events from head on, which counts the events that have left.
type windowSum struct {
	head int
	sum  uint64
	own  int64 // when fromFirst began, or the number of ofCalendar
}

func newWitness(claims int) *witness {
	return &witness{newest: math.MinInt64, sums: make([]windowSum, claims)}
}

func (w *witness) end() int { return w.gone + len(w.allowed) }

// at returns the content of the window of c, the i-th claim, at time t. Times of calls must not go back.
func (w *witness) at(i int, c *claim, t int64) uint64 {
	s := &w.sums[i]
	switch c.extent {
	case trueWindow:
		for s.head < w.end() && w.allowed[s.head-w.gone].t <= t-c.span {
			s.sum -= w.allowed[s.head-w.gone].cost
			s.head++
		}
		return s.sum
	case fromFirst:
		if s.sum == 0 || t-s.own < c.span {
			return s.sum
		}
	case ofCalendar:
		n := c.number(t)
		if n == s.own {
			return s.sum
		}
		s.own = n
	}
	s.head, s.sum = w.end(), 0
	return 0
}

// allow adds an event to the windows of claims.
func (w *witness) allow(claims []claim, t int64, cost uint64) {
	for i := range claims {
		if w.at(i, &claims[i], t) == 0 && claims[i].extent == fromFirst {
			w.sums[i].own = t
		}
		w.sums[i].sum += cost
	}
	w.allowed = append(w.allowed, allowedTake{t, cost})
	w.drop()
}

// takeBack makes the event of that number one that never came.
func (w *witness) takeBack(number int) {
	if number < w.gone {
		return
	}
	e := &w.allowed[number-w.gone]
	for i := range w.sums {
		if w.sums[i].head <= number {
			w.sums[i].sum -= e.cost
		}
	}
	e.cost = 0
}

// drop removes the events that have left all windows.
func (w *witness) drop() {
	first := w.end()
	for i := range w.sums {
		first = min(first, w.sums[i].head)
	}
	if n := first - w.gone; n > 1<<10 && 2*n > len(w.allowed) {
		w.allowed = slices.Delete(w.allowed, 0, n)
		w.gone = first
	}
}

// claimsOf returns what a rule allows at worst by docs/dev/proofs.md, and the windows of which one must be exceeded for a
// refusal. needs is nil where a level decides and not a window.
func claimsOf(r *ratelimit.Rule, resolution time.Duration) (claims, needs []claim) {
	for _, l := range r.Limits {
		n, span, burst := l.N, int64(l.Span), l.Burst
		if burst == 0 {
			burst = n
		}
		slot := slotWidth(l.Span)
		rest := func(width int64) int64 { // how much longer the last of a slot may stay than it should
			r := max(int64(resolution), 1)
			return (width - 1) / r * r
		}
		switch r.Algorithm {
		case ratelimit.Sliding, ratelimit.Exact, ratelimit.InFlight:
			claims = append(claims, claim{span: span, most: n})
			if r.Algorithm != ratelimit.Sliding || n <= 128 {
				slot = 1
			}
			needs = append(needs, claim{span: span + rest(slot), most: n})
		case ratelimit.TwoBucket:
			claims = append(claims, claim{span: span, most: 2*n - 1})
			needs = append(needs, claim{span: span + rest(span), most: n})
		case ratelimit.GCRA, ratelimit.LeakyBucket:
			part := (uint64(span/4)*n + uint64(span) - 1) / uint64(span) // of N, in a quarter of the span
			claims = append(claims, claim{span: span, most: n + burst - 1},
				claim{span: span / 4, most: burst + part - 1}, claim{span: 1, most: burst})
		case ratelimit.Fixed:
			own := claim{extent: fromFirst, span: span, most: n}
			claims, needs = append(claims, own, claim{span: span, most: 2*n - 1}), append(needs, own)
		case ratelimit.Calendar:
			own := claim{extent: ofCalendar, number: periodNumber(l.Per, r.Zone), most: n}
			claims, needs = append(claims, own, claim{span: shortestPeriod(l.Per), most: 2 * n}), append(needs, own)
		default:
			panic(fmt.Sprint("what does ", r.Algorithm, " promise?"))
		}
	}
	return claims, needs
}

// slotWidth is the width in docs/dev/proofs.md.
func slotWidth(span time.Duration) int64 {
	if span%60 != 0 {
		return int64(span) / 64
	}
	return int64(span) / 60
}

// periodNumber returns what numbers the periods by what the wall clock shows.
func periodNumber(p ratelimit.Period, zone *time.Location) func(t int64) int64 {
	return func(t int64) int64 {
		at := time.Unix(0, t).In(zone)
		switch year, month, day := at.Date(); p {
		case ratelimit.PerMonth:
			return int64(year)*12 + int64(month)
		case ratelimit.PerDay:
			return (int64(year)*12+int64(month))*31 + int64(day)
		case ratelimit.PerMinute: // offsets are whole minutes
			return floorTo(t, int64(time.Minute))
		}
		return floorTo(t, int64(time.Second))
	}
}

func shortestPeriod(p ratelimit.Period) int64 {
	switch p {
	case ratelimit.PerMonth:
		return 28*24*int64(time.Hour) - int64(time.Hour)
	case ratelimit.PerDay:
		return 23 * int64(time.Hour)
	case ratelimit.PerMinute:
		return int64(time.Minute)
	}
	return int64(time.Second)
}

func edge(t, width int64) int64 { return floorTo(t, max(width, 1)) + max(width, 1) }

func floorTo(t, width int64) int64 { return t - ((t%width)+width)%width }

// newYork is where days are of 23 to 25 hours.
func newYork(t testing.TB) *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Logf("no time zones here (%v): a day is always 24 hours", err)
		return time.FixedZone("east", 5*3600)
	}
	return zone
}
