package storetest

import (
	"math"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// settleCases are about refunds, later charges and resets.
var settleCases = []Case{
	{
		"Refund", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return []ratelimit.Rule{c.randomLimits(a), named("second", c.randomLimits(a))}
		}, (*walk).take, (*walk).take, (*walk).peek, (*walk).settle),
		"A refund takes back what was charged at that time, never more than was charged, and nothing that has left the window or was never charged.",
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
		"ChargeLater", anyStore, chargeLaterCase,
		"A settlement charges the rest in full, even beyond the limit, and it leaves the window like any other charge.",
	},
	{
		"Reset", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.lasting(a, 10)
			r.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
			return []ratelimit.Rule{r, named("second", c.lasting(a, 100))}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).settle, (*walk).reset),
		"A reset deletes what the subjects have counted, and nothing else; what was charged before it is not given back later.",
	},
}

// named returns r with another name.
func named(name string, r ratelimit.Rule) ratelimit.Rule {
	r.Name = name
	return r
}

// lasting returns a rule of which nothing leaves the window while a case runs.
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
				if o := after.Subjects[0].Outcome; c.config.Pass == nil && (!o.Refused || o.Remaining != 0 || o.RetryAfter <= 0) {
					c.fatal("%v: settled to %d under a limit of %d, and then %+v, want a refusal", a, actual, n, o)
				}
				// A bucket whose burst is N counts N beyond it at most, and all else
				// leaves with its slot.
				s.pass(2*max(c.unit, time.Second) + c.unit)
				if after := s.raw(n, false, about(0, "k")); !admitted(after) {
					c.fatal("%v: settled to %d under a limit of %d, it never recovers: %+v", a, actual, n, after.Subjects[0].Outcome)
				}
				if c.config.Pass != nil {
					break
				}
			}
		}
	}
}
