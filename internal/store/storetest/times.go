package storetest

import (
	"math"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// timeCases are about clocks.
var timeCases = []Case{
	{
		"ClockJumps", givenTimes, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.limitOf(a, 6)
			r.Ban = &ratelimit.Ban{After: 6, Of: ratelimit.Refusals, Span: c.units(2), For: c.units(3)}
			return []ratelimit.Rule{r, named("second", c.limitOf(ratelimit.Sliding, 100))}
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).jump),
		"With any steps of the clock, an event is judged at its time, or at the newest time of its records if that is later, which then becomes the time of all of them. Other keys are not affected.",
	},
	{
		"OwnClock", ownClock, ownClockCase,
		"A store with its own clock returns the time of its decision, which never goes back.",
	},
	{
		"Ends", givenTimes, endsCase,
		"Times from 1720 to 2220, windows from a millisecond to ten years, and the least and the largest limits and costs are judged like all others: no overflow, no panic.",
	},
}

func ownClockCase(c *check) {
	s := c.session(c.lasting(ratelimit.Sliding, 1000))
	last := int64(math.MinInt64)
	for range 20 {
		r := s.raw(1, false, about(0, "k"))
		if r.Now < last {
			c.fatal("a request was judged %d ns before the one before it", last-r.Now)
		}
		last = r.Now
		s.pass(c.unit / 20)
	}
	if passed := last - c.base; passed < int64(c.unit)/2 {
		c.fatal("after %v, the store's clock has moved by %v", c.unit, time.Duration(passed))
	}
}

// ends are the first and the last time that a Limiter passes to a store.
const ends = math.MaxInt64 - 4*int64(ratelimit.MaxSpan)

func endsCase(c *check) {
	for _, a := range c.algorithms() {
		for _, span := range []time.Duration{time.Millisecond, time.Hour, ratelimit.MaxSpan} {
			for _, n := range []uint64{2, 100, maxN(a)} {
				r := c.rule("r", ratelimit.Limit{N: n, Span: span})
				r.Algorithm = a
				if a == ratelimit.Calendar {
					r.Limits[0] = ratelimit.Limit{N: n, Per: ratelimit.PerDay}
				}
				if n > 100 { // and so no count of a slot gets full, which nothing is promised of
					r.Limits = append(r.Limits, r.Limits[0])
					r.Limits[1].N--
				} else {
					r.Ban = &ratelimit.Ban{
						After: 1, Of: ratelimit.Refusals, Span: ratelimit.MaxSpan, For: ratelimit.MaxSpan / 4,
						Factor: 2, Remember: ratelimit.MaxSpan,
					}
				}
				s := c.session(r)
				for _, now := range []int64{-ends, -1 << 60, -1, 0, 1, 1 << 60, 7_258_118_400e9, ends} {
					s.now = now
					s.takeEnds(n)
				}
			}
		}
	}
}

// takeEnds uses up a limit of n, and then takes the costs at the ends of their range.
func (s *session) takeEnds(n uint64) {
	for range 4 {
		s.take(n/2, about(0, "k"))
	}
	s.take(1, about(0, "k"))
	for _, cost := range append(costs, n-2, n) {
		req, ok := s.take(cost, about(0, "another"))
		if ok && cost > 2 {
			s.settle(req, cost/2)
			s.settle(&request{Now: req.Now, Cost: cost / 2, Subjects: req.Subjects}, 0)
		}
	}
}
