package storetest

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// ruleCases are about several rules in one request.
var ruleCases = []Case{
	{
		"AllOrNothing", anyStore, allOrNothingCase,
		"When one of eight rules refuses, whichever it is, nothing is charged to any.",
	},
	{
		"Combination", anyStore, combinationCase,
		"Limits charge, bans observe: random events under random rules are judged as the documentation of package ratelimit has it.",
	},
	{
		"Shadow", anyStore, shadowCase,
		"A shadow rule says what it would do, refuses nothing, and charges only what is admitted.",
	},
}

func allOrNothingCase(c *check) {
	const rules = 8
	for refusing := range rules {
		var rs []ratelimit.Rule
		algorithms := c.algorithms()
		for i := range rules {
			r := c.limitOf(algorithms[i%len(algorithms)], 20)
			if i == refusing {
				r.Limits[0].N = 3
			}
			rs = append(rs, named(fmt.Sprint("r", i), r))
		}
		s := c.session(rs...)
		for i := range 6 {
			if _, ok := s.take(1, s.all("k")...); ok != (i < 3) {
				c.fatal("event %d with a limit of 3 in rule %d: admitted is %v", i, refusing, ok)
			}
		}
		if _, ok := s.take(18, s.all("k")...); ok {
			c.fatal("a cost of 18 was admitted, with a limit of 3 in rule %d", refusing)
		}
		for i := range rules {
			if n := s.used(i, "k"); n != 3 {
				c.fatal("rule %d refused; rule %d has charged %d, want the 3 admitted", refusing, i, n)
			}
		}
	}
}

// shadowed and named return r, changed.
func shadowed(r ratelimit.Rule) ratelimit.Rule {
	r.Shadow = true
	return r
}

func named(name string, r ratelimit.Rule) ratelimit.Rule {
	r.Name = name
	return r
}

func combinationCase(c *check) {
	for range c.steps(200) {
		var rules []ratelimit.Rule
		for i := range 1 + c.rnd.IntN(8) {
			rules = append(rules, c.randomRule(fmt.Sprint("r", i)))
		}
		s := c.session(rules...)
		keys := []string{"a", "b"}
		for range min(60, c.steps(60)) {
			var subjects []subject
			for i := range rules {
				if c.rnd.IntN(4) > 0 {
					subjects = append(subjects, about(i, keys[c.rnd.IntN(2)]))
				}
			}
			if len(subjects) == 0 {
				continue
			}
			cost := c.rnd.Uint64N(4)
			if c.rnd.IntN(5) == 0 {
				s.look(cost, subjects...)
			} else if r, ok := s.take(cost, subjects...); ok && c.rnd.IntN(8) == 0 {
				s.settle(r, c.rnd.Uint64N(cost+1))
			}
			s.pass(time.Duration(c.rnd.Int64N(int64(c.unit) / 6)).Truncate(c.config.Resolution))
		}
	}
}

// randomRule returns a rule that interferes with others.
func (c *check) randomRule(name string) ratelimit.Rule {
	algorithms := c.algorithms()
	r := c.rule(name)
	r.Algorithm = algorithms[c.rnd.IntN(len(algorithms))]
	r.Shadow, r.CountRefused = c.rnd.IntN(4) == 0, c.rnd.IntN(4) == 0 && r.Algorithm != ratelimit.InFlight
	for range c.rnd.IntN(3) {
		r.Limits = append(r.Limits, c.under(r.Algorithm, c.rnd.Uint64N(12), 1+c.rnd.IntN(2)))
	}
	if len(r.Limits) > 0 && c.rnd.IntN(2) == 0 {
		return r
	}
	r.Ban = c.randomBan()
	if len(r.Limits) > 0 && c.rnd.IntN(2) == 0 {
		r.Ban.Of = ratelimit.Refusals
	}
	return r
}

func (c *check) randomBan() *ratelimit.Ban {
	b := &ratelimit.Ban{After: c.rnd.Uint64N(6), Span: c.units(1 + c.rnd.IntN(2)), For: c.units(1), Extend: c.rnd.IntN(4) == 0}
	if c.rnd.IntN(2) == 0 {
		b.Factor, b.Max, b.Remember = 1+2*c.rnd.Float64(), c.units(3), c.units(1+c.rnd.IntN(3))
	}
	return b
}

func shadowCase(c *check) {
	for _, a := range c.algorithms() {
		for _, countRefused := range []bool{false, true} {
			shadow := named("shadow", c.limitOf(a, 2))
			shadow.Shadow = true
			shadow.CountRefused = countRefused && a != ratelimit.InFlight
			banning := shadowed(c.rule("banning"))
			banning.Ban = &ratelimit.Ban{After: 3, Span: c.units(1), For: c.units(1)}
			s := c.session(shadow, named("enforced", c.limitOf(a, 5)), banning)
			for i := range 9 {
				if _, ok := s.take(1, s.all("k")...); ok != (i < 5) {
					c.fatal("%v: event %d under a limit of 5 and a shadow limit of 2: admitted is %v", a, i, ok)
				}
			}
		}
	}
}
