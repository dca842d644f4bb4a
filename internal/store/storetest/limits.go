package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// limitCases are about what is allowed, charged and given back.
var limitCases = []Case{
	{
		"Algorithms", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return []ratelimit.Rule{c.extremeLimits(a), named("second", c.randomLimits(a))}
		}, (*walk).take, (*walk).take, (*walk).peek, (*walk).settle),
		"Random events of any cost, at times from 1720 to 2220, are judged by the definition of the algorithm of their rule, in windows from a millisecond to ten years. A cost is charged in full or not at all. A refund takes back what was charged at that time, and nothing that has left the window or was never charged. A peek changes nothing.",
	},
	{
		"Combination", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return c.randomRules(a, 8)
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).settle),
		"Limits charge, bans observe: random events under random rules are judged as the documentation of package ratelimit says.",
	},
	{
		"AllOrNothing", anyStore, walking(func(c *check, _ ratelimit.Algorithm) (rules []ratelimit.Rule) {
			for i, a := range c.algorithms() {
				rules = append(rules, named(fmt.Sprint("r", i), c.limitOf(a, 1+c.rnd.Uint64N(20))))
			}
			return rules
		}, (*walk).take),
		"When one of many rules refuses, whichever it is, nothing is charged to any.",
	},
	{
		"RefundOldest", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			n := []uint64{12, 120}[c.rnd.IntN(2)]
			two, bans := c.limitOf(a, n), c.rule("only bans")
			two.Limits = append(two.Limits, c.under(a, n+n/4, 3))
			if a == ratelimit.GCRA || a == ratelimit.LeakyBucket {
				two.CountRefused = c.rnd.IntN(2) == 0 // beyond what a bucket holds
			}
			bans.Ban = &ratelimit.Ban{After: 1000, Span: time.Hour, For: time.Hour}
			return []ratelimit.Rule{two, named("second", c.limitOf(a, n+5)), bans}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).refund, (*walk).refund, (*walk).jump),
		"A refund without the time of the charge takes back the oldest first, in each limit, and reports how much. A bucket that was charged more than it holds gives nothing back until it has been empty.",
	},
	{
		"LimitOfEvent", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r, second := c.limitOfEvent(c.randomLimits(a)), c.limitOfEvent(c.limitOf(a, 1+c.rnd.Uint64N(140)))
			second.CountRefused = (a == ratelimit.GCRA || a == ratelimit.LeakyBucket) && c.rnd.IntN(2) == 0
			if c.rnd.IntN(2) == 0 {
				r.Ban = &ratelimit.Ban{After: 3, Of: ratelimit.Refusals, Span: units(2), For: units(1)}
			}
			if c.rnd.IntN(2) == 0 { // a store may have a shorter way for one limit
				return []ratelimit.Rule{c.limitOfEvent(c.limitOf(a, 1+c.rnd.Uint64N(140)))}
			}
			return []ratelimit.Rule{r, named("second", second)}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).settle, (*walk).refund),
		"Each event is judged by the N that it brings, in the one window of its key, which holds all that was counted for events with any N: never over the N that each was judged by.",
	},
	{
		"Reset", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.lasting(a, 10)
			r.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
			return []ratelimit.Rule{r, named("second", c.lasting(a, 100))}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).settle, (*walk).reset),
		"A reset deletes what the subjects have counted, and nothing else; what was charged before it is not given back later.",
	},
	{
		"ChargeLater", anyStore, chargeLaterCase,
		"A settlement charges the rest in full, even beyond the limit, and it leaves the window like any other charge.",
	},
	{
		"ClockJumps", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.limitOf(a, 6)
			r.Ban = &ratelimit.Ban{After: 6, Of: ratelimit.Refusals, Span: units(2), For: units(3)}
			return []ratelimit.Rule{r, named("second", c.limitOf(ratelimit.Sliding, 100))}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).jump),
		"With any steps of the clock, an event is judged at its time, or at the newest time of its records if that is later, which then becomes the time of all of them. Other keys are not affected.",
	},
}

// named returns r with another name.
func named(name string, r ratelimit.Rule) ratelimit.Rule {
	r.Name = name
	return r
}

// limitOfEvent returns r, with one limit whose N is a default.
func (c *check) limitOfEvent(r ratelimit.Rule) ratelimit.Rule {
	l := &r.Limits[c.rnd.IntN(len(r.Limits))]
	l.AtMost = []uint64{l.N, l.N + 1, 2 * l.N, 10 * l.N, 129, 1000}[c.rnd.IntN(6)]
	if l.AtMost = max(l.AtMost, l.N); c.rnd.IntN(8) == 0 && r.Algorithm != ratelimit.GCRA && r.Algorithm != ratelimit.LeakyBucket {
		l.N = 0
	}
	return r
}

// extremeLimits is randomLimits, with refused events that count, or with a very large limit, one of 0, or a very short
// or long window.
func (c *check) extremeLimits(a ratelimit.Algorithm) ratelimit.Rule {
	r := c.randomLimits(a)
	l := &r.Limits[0]
	switch buckets := a == ratelimit.GCRA || a == ratelimit.LeakyBucket; c.rnd.IntN(8) {
	case 0: // of buckets, RefundOldest has these
		r.CountRefused = a != ratelimit.InFlight && !buckets
	case 1: // of the largest, the count of a slot may be full, and no store promises anything then
		l.N = limit.MaxN - 1
		if a == ratelimit.Exact || a == ratelimit.InFlight {
			l.N = limit.MaxLog
		}
	case 2:
		l.N, l.Burst = 0, 0
	case 3, 4:
		if a != ratelimit.Calendar {
			l.Span, l.Burst = []time.Duration{time.Millisecond, time.Hour, limit.MaxSpan}[c.rnd.IntN(3)], 0
		}
	}
	return r
}

// limitOf returns a limit of n in a second under a.
func (c *check) limitOf(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
	r := c.rule("r", c.under(a, n, 1))
	r.Algorithm = a
	return r
}

// lasting returns a rule under which nothing leaves the window while a case runs.
func (c *check) lasting(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
	r := c.limitOf(a, n)
	r.Limits[0].Span = 24 * time.Hour
	if a == ratelimit.Calendar {
		r.Limits[0] = ratelimit.Limit{N: n, Per: ratelimit.PerMonth}
	}
	return r
}

func chargeLaterCase(c *check) {
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, n := range []uint64{10, 100} {
			for _, actual := range []uint64{n, n + 1, 3 * n, 1 << 33, math.MaxInt64, math.MaxUint64} {
				s := c.session(c.limitOf(a, n))
				r, _ := s.take(1, about(0, "k"))
				s.correct(r, actual)
				after := s.raw(1, true, about(0, "k"))
				if o := after.Subjects[0].Outcome; !o.Refused || o.Remaining != 0 || o.RetryAfter <= 0 {
					c.fatal("%v: settled to %d under a limit of %d, and then %+v, want a refusal", a, actual, n, o)
				}
				// A bucket whose burst is N counts N beyond it at most, and all else
				// leaves with its slot.
				s.pass(units(3))
				if after := s.raw(n, false, about(0, "k")); !allowed(after) {
					c.fatal("%v: settled to %d under a limit of %d, it never recovers: %+v", a, actual, n, after.Subjects[0].Outcome)
				}
			}
		}
	}
}
