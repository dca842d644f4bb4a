package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// timeCases are about clocks.
var timeCases = []Case{
	{
		"ClockBack", givenTimes, clockBackCase,
		"An event earlier than the newest one judged under one of its records is judged at that newest time; other keys are not held back.",
	},
	{
		"ClockJumps", givenTimes, clockJumpsCase,
		"Whatever a clock does, back, forth, by days, nothing is admitted that should not be and nobody is shut out for it.",
	},
	{
		"ClockShared", givenTimes, clockSharedCase,
		"A request about several keys is judged at the newest time of all of them, and takes them all there.",
	},
	{
		"OwnClock", ownClock, ownClockCase,
		"A store with a clock of its own says when it judged, and that never goes back.",
	},
	{
		"EndsOfTime", givenTimes, endsOfTimeCase,
		"Times from 1720 to 2220 are judged without an overflow, with windows from a millisecond to ten years.",
	},
	{
		"Overflow", givenTimes, overflowCase,
		"Costs, limits and times at the ends of their ranges are judged as any: no wrap, no panic.",
	},
}

func clockBackCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{4, 100} {
			s := c.session(c.limitOf(a, n))
			s.take(n-1, about(0, "k"))
			s.now -= int64(c.units(600))
			if r, ok := s.take(1, about(0, "k")); !ok || r.Now != c.start() {
				c.fatal("%v: the last that fits, with the clock set back: admitted %v, judged %d ns too early", a, ok, c.start()-r.Now)
			}
			if r, _ := s.take(1, about(0, "another")); r.Now != s.now {
				c.fatal("%v: a key that was never seen was judged at another's time", a)
			}
			for range 20 {
				s.take(1, about(0, "k"))
				s.pass(c.units(31))
			}
		}
	}
}

func clockJumpsCase(c *check) {
	jumps := []time.Duration{
		-1, 1, -time.Millisecond, -time.Second, time.Minute, -time.Minute, time.Hour, -time.Hour,
		100 * 24 * time.Hour, -90 * 24 * time.Hour, 30 * 365 * 24 * time.Hour,
	}
	for _, a := range c.algorithms() {
		r := c.limitOf(a, 6)
		r.Ban = &ratelimit.Ban{After: 6, Of: ratelimit.Refusals, Span: c.units(2), For: c.units(3)}
		s := c.session(r)
		for range c.steps(150) {
			s.take(1+c.rnd.Uint64N(3), about(0, []string{"a", "b"}[c.rnd.IntN(2)]))
			s.pass(time.Duration(c.rnd.Int64N(int64(c.unit) / 5)))
			if c.rnd.IntN(12) == 0 {
				s.now += int64(jumps[c.rnd.IntN(len(jumps))])
				s.now = min(s.now, c.base+int64(150*365*24*time.Hour))
			}
		}
	}
}

func clockSharedCase(c *check) {
	s := c.session(c.limitOf(ratelimit.Sliding, 5), named("second", c.limitOf(ratelimit.Sliding, 5)))
	early := s.now
	s.take(2, about(0, "k"), about(1, "k"))
	s.pass(c.units(1) / 2)
	s.take(2, about(0, "k"), about(1, "other"))
	s.now = early // now rule 1 has not judged k since, but rule 0 has
	s.take(1, about(0, "k"), about(1, "k"))
	s.now = early + int64(c.units(1))/4
	s.take(1, about(1, "k")) // and is held there
	s.look(1, about(1, "other"), about(0, "new"))
	s.now = early + int64(c.units(1))
	for range 3 {
		s.take(1, about(0, "k"), about(1, "k"))
	}
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

// ends are the first and the last time that a Limiter asks about.
const ends = math.MaxInt64 - 4*int64(ratelimit.MaxSpan)

func endsOfTimeCase(c *check) {
	for _, a := range c.algorithms() {
		for _, span := range []time.Duration{time.Millisecond, time.Hour, ratelimit.MaxSpan} {
			for _, n := range []uint64{2, 100} {
				r := c.rule("r", ratelimit.Limit{N: n, Span: span})
				r.Algorithm = a
				if a == ratelimit.Calendar {
					r.Limits[0] = ratelimit.Limit{N: n, Per: ratelimit.PerDay}
				}
				r.Ban = &ratelimit.Ban{
					After: 1, Of: ratelimit.Refusals, Span: ratelimit.MaxSpan, For: ratelimit.MaxSpan / 4,
					Factor: 2, Remember: ratelimit.MaxSpan,
				}
				s := c.session(r)
				for _, now := range []int64{-ends, -1 << 60, -1, 0, 1, 1 << 60, 7_258_118_400e9, ends} {
					s.now = now
					for range 4 {
						s.take(n/2, about(0, "k"))
					}
					s.take(1, about(0, "k"))
				}
			}
		}
	}
}

func overflowCase(c *check) {
	for _, a := range c.algorithms() {
		most := uint64(ratelimit.MaxSliding)
		if a == ratelimit.Exact || a == ratelimit.InFlight {
			most = ratelimit.MaxExact
		}
		for _, span := range []time.Duration{time.Millisecond, time.Minute, ratelimit.MaxSpan} {
			r := c.rule("r", ratelimit.Limit{N: most, Span: span}, ratelimit.Limit{N: most - 1, Span: span})
			r.Algorithm = a
			if a == ratelimit.Calendar {
				r.Limits = []ratelimit.Limit{{N: most, Per: ratelimit.PerSecond}, {N: most - 1, Per: ratelimit.PerMonth}}
			}
			for _, now := range []int64{-ends, 0, c.base, ends} {
				s := c.session(r)
				s.now = now
				for _, cost := range slices.Concat(costs, []uint64{most - 2, 2, 1, 1, most}) {
					if a == ratelimit.Exact || a == ratelimit.InFlight {
						s.look(cost, about(0, "k")) // each is kept: no need to do it often
						continue
					}
					req, ok := s.take(cost, about(0, "k"))
					if ok && cost > 2 {
						s.settle(req, cost/2)
						s.settle(&request{Now: req.Now, Cost: cost / 2, Subjects: req.Subjects}, 0)
					}
				}
			}
		}
	}
}
