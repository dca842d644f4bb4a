package storetest

import (
	"math"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// limitCases are about one rule.
var limitCases = []Case{
	{
		"Limit", anyStore, limitCase,
		"A key is admitted until it has used the limit, then refused, and admitted again when that has left the window.",
	},
	{
		"Edges", givenTimes, edgesCase,
		"What was charged at t counts until t+span and not at it; the waiting time that a refusal tells is the shortest after which a lone event is admitted.",
	},
	{
		"Cost", anyStore, costCase,
		"A cost is charged whole or not at all; one above the limit never fits and has no waiting time; a cost of 0 charges nothing.",
	},
	{
		"Zero", anyStore, zeroCase,
		"A limit of 0 refuses every event, and no waiting helps.",
	},
	{
		"Look", anyStore, lookCase,
		"A request that only looks says what would be, and changes nothing.",
	},
	{
		"Algorithms", anyStore, algorithmsCase,
		"Random events under one limit are judged as the definition of its algorithm has it.",
	},
	{
		"SeveralLimits", anyStore, severalLimitsCase,
		"Each limit of a rule must admit, and all of them or none are charged.",
	},
	{
		"CountRefused", anyStore, countRefusedCase,
		"Under a rule that says so, refused events count toward its limits as well.",
	},
	{
		"Idle", anyStore, idleCase,
		"After any idle time the window holds what was charged within the span, and nothing else.",
	},
}

// limitOf returns a limit of n in a unit under a.
func (c *check) limitOf(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
	r := c.rule("r", c.under(a, n, 1))
	r.Algorithm = a
	return r
}

func limitCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{1, 2, 7, 100, 128, 129, 150} {
			s := c.session(c.limitOf(a, n))
			for range n + 3 {
				s.take(1, about(0, "k"))
			}
			if _, ok := s.look(1, about(0, "another")); !ok {
				c.fatal("%v: a key was refused for what another has used", a)
			}
			if c.config.Pass != nil && n > 2 {
				continue // once is enough to wait
			}
			s.pass(2 * max(c.unit, time.Second))
			if _, ok := s.take(n, about(0, "k")); !ok {
				c.fatal("%v: the limit of %d did not come back", a, n)
			}
		}
	}
}

func edgesCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{1, 3, 60, 90, 200} {
			s := c.session(c.limitOf(a, n))
			for range 12 {
				for left := n; left > 0; {
					cost := 1 + c.rnd.Uint64N(left)
					if _, ok := s.take(cost, about(0, "k")); !ok {
						break
					}
					left -= cost
					s.pass(time.Duration(c.rnd.Int64N(int64(c.unit) / 4)))
				}
				r, ok := s.take(1+c.rnd.Uint64N(n), about(0, "k"))
				if ok {
					continue
				}
				wait := r.Subjects[0].Outcome.RetryAfter
				s.pass(wait - c.config.Resolution)
				if _, ok := s.look(r.Cost, about(0, "k")); ok {
					c.fatal("%v, N %d: admitted %v before the end of the wait", a, n, c.config.Resolution)
				}
				s.pass(c.config.Resolution)
				if _, ok := s.take(r.Cost, about(0, "k")); !ok {
					c.fatal("%v, N %d: refused at the end of the wait", a, n)
				}
			}
		}
	}
}

// costs are those at which numbers wrap, in one form or another.
var costs = []uint64{
	0, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
}

func costCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{1, 10, 150, ratelimit.MaxSliding} {
			if n == ratelimit.MaxSliding && (a == ratelimit.Exact || a == ratelimit.InFlight) {
				n = ratelimit.MaxExact
			}
			s := c.session(c.limitOf(a, n))
			for _, cost := range append(costs, n-1, 2, n, 0) {
				_, ok := s.take(cost, about(0, "k"))
				if cost > n && ok {
					c.fatal("%v: a cost of %d was admitted under a limit of %d", a, cost, n)
				}
			}
			for _, cost := range append(costs, n, n-1, 0) {
				s.look(cost, about(0, "another"))
			}
			if _, ok := s.take(n, about(0, "another")); !ok {
				c.fatal("%v: a cost of all of the limit, %d, was refused", a, n)
			}
		}
	}
}

func zeroCase(c *check) {
	for _, a := range c.algorithms() {
		s := c.session(c.limitOf(a, 0), named("other", c.limitOf(a, 5)))
		for _, cost := range costs {
			if _, ok := s.take(cost, s.all("k")...); ok != (cost == 0) {
				c.fatal("%v: a cost of %d under a limit of 0: admitted is %v", a, cost, ok)
			}
		}
		if n := s.used(1, "k"); n != 0 {
			c.fatal("%v: a limit of 0 refused, and %d were charged to the other", a, n)
		}
	}
}

func lookCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{3, 150} {
			r := c.limitOf(a, n)
			r.Ban = &ratelimit.Ban{After: 3, Of: ratelimit.Refusals, Span: c.units(2), For: c.units(1)}
			s := c.session(r)
			for range c.steps(60) {
				// The model does not count what looks: if the store does, the next
				// take differs.
				for range 3 {
					s.look(c.rnd.Uint64N(n+2), about(0, "k"))
				}
				s.look(1, about(0, "never taken"))
				s.take(1+c.rnd.Uint64N(1+n/2), about(0, "k"))
				s.pass(time.Duration(c.rnd.Int64N(int64(c.unit) / 3)))
				if c.config.Pass != nil {
					continue
				}
				s.now += int64(3 * c.unit) // a look may be about the future
				s.look(1, about(0, "k"))
				s.now -= int64(3 * c.unit)
			}
		}
	}
}

// steps returns how many steps a random case has: fewer if each has to be waited
// for.
func (c *check) steps(n int) int {
	if c.config.Pass != nil {
		n /= 10
	}
	return n * c.config.Rounds
}

func algorithmsCase(c *check) {
	for _, a := range c.algorithms() {
		for range 8 {
			r := c.rule("r", c.randomLimit(a))
			r.Algorithm = a
			if a == ratelimit.Calendar && c.rnd.IntN(2) == 0 {
				r.Zone = time.FixedZone("east", 5*3600+1800)
			}
			s := c.session(r)
			s.random(c.steps(150), about(0, "a"), about(0, "b"))
		}
	}
}

// randomLimit returns some limit that a can have, in a few units.
func (c *check) randomLimit(a ratelimit.Algorithm) ratelimit.Limit {
	n := 1 + c.rnd.Uint64N(12)
	if c.rnd.IntN(3) == 0 {
		n = 60 + c.rnd.Uint64N(300)
	}
	l := c.under(a, n, 1+c.rnd.IntN(3))
	switch a {
	case ratelimit.Calendar:
		l.Per = ratelimit.PerSecond + ratelimit.Period(c.rnd.IntN(6))
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		if c.rnd.IntN(2) == 0 {
			l.Burst = 1 + c.rnd.Uint64N(2*n)
		}
	default:
		l.Span += time.Duration(c.rnd.IntN(7)) * time.Millisecond
	}
	return l
}

// random takes at random, now and then giving back what was taken.
func (s *session) random(steps int, subjects ...subject) {
	var taken []*request
	limit := s.model.set.Rule(0).Limits[0]
	for range steps {
		subject := subjects[s.rnd.IntN(len(subjects))]
		cost := uint64(1)
		switch s.rnd.IntN(8) {
		case 0:
			cost = s.rnd.Uint64N(most(limit) + 2)
		case 1, 2:
			cost = 1 + s.rnd.Uint64N(1+most(limit)/8)
		}
		if r, ok := s.take(cost, subject); ok {
			taken = append(taken, r)
		}
		if n := len(taken); n > 0 && s.rnd.IntN(6) == 0 {
			i := s.rnd.IntN(n)
			r := taken[i]
			taken = append(taken[:i], taken[i+1:]...)
			s.settle(r, s.rnd.Uint64N(r.Cost+1))
		}
		s.pass(s.gap(limit))
	}
}

// gap returns a random time between two events: such that some are refused, and
// now and then so long that all is forgotten.
func (s *session) gap(l ratelimit.Limit) time.Duration {
	span := int64(l.Window())
	if s.config.Pass != nil {
		return time.Duration(s.rnd.Int64N(int64(s.unit)/4 + 1))
	}
	switch s.rnd.IntN(40) {
	case 0:
		return time.Duration(s.rnd.Int64N(3 * span))
	case 1:
		return time.Duration(span / 60)
	case 2, 3, 4:
		return 0
	}
	gap := time.Duration(s.rnd.Int64N(2*span/int64(min(l.N, 100)) + 1))
	return gap.Truncate(s.config.Resolution)
}

func severalLimitsCase(c *check) {
	for _, a := range c.algorithms() {
		for range 6 {
			r := c.rule("r")
			r.Algorithm = a
			for range 2 + c.rnd.IntN(3) {
				r.Limits = append(r.Limits, c.randomLimit(a))
			}
			c.session(r).random(c.steps(80), about(0, "k"))
		}
	}
}

func countRefusedCase(c *check) {
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, n := range []uint64{2, 10, 150} {
			r := c.limitOf(a, n)
			r.CountRefused = true
			s := c.session(r)
			for range c.steps(80) {
				s.take(1, about(0, "k"))
				if c.config.Pass == nil {
					s.pass(time.Duration(c.rnd.Int64N(int64(c.unit) / int64(n))))
				}
			}
		}
	}
}

func idleCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{5, 120} {
			s := c.session(c.limitOf(a, n))
			for _, tenths := range []int{3, 5, 9, 10, 11, 15, 20, 100, 1000, 10_000} {
				if c.config.Pass != nil && tenths > 15 {
					break
				}
				s.take(n/2, about(0, "k"))
				s.pass(time.Duration(tenths) * s.unit / 10)
				s.look(0, about(0, "k"))
				s.take(1, about(0, "k"))
			}
		}
	}
}
