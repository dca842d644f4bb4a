package storetest

import (
	"fmt"
	"math"

	"github.com/lately-go/lately/ratelimit"
)

// limitCases are about what is admitted.
var limitCases = []Case{
	{
		"Algorithms", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return []ratelimit.Rule{c.randomLimits(a)}
		}, (*walk).take, (*walk).take, (*walk).peek),
		"Random events under one rule are judged by the definition of its algorithm. A peek changes nothing.",
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
		"CountRefused", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			r := c.limitOf(a, []uint64{2, 10, 150}[c.rnd.IntN(3)])
			r.CountRefused = a != ratelimit.InFlight
			return []ratelimit.Rule{r}
		}, (*walk).takeOne),
		"Under a rule with CountRefused, refused events count toward its limits as well.",
	},
	{
		"Cost", anyStore, costCase,
		"A cost is charged in full or not at all; a cost above the limit is refused with RetryAfter Never; a cost of 0 charges nothing.",
	},
}

// limitOf returns a limit of n in a unit under a.
func (c *check) limitOf(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
	r := c.rule("r", c.under(a, n, 1))
	r.Algorithm = a
	return r
}

// costs are values at which integers or floats overflow.
var costs = []uint64{
	0, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
}

// maxN returns the largest limit under a.
func maxN(a ratelimit.Algorithm) uint64 {
	if a == ratelimit.Exact || a == ratelimit.InFlight {
		return ratelimit.MaxExact
	}
	return ratelimit.MaxSliding
}

func costCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{0, 1, 10, 150, maxN(a)} {
			s := c.session(c.limitOf(a, n))
			for _, cost := range append(costs, n-1, 2, n, 0) {
				s.take(cost, about(0, "k"))
			}
			for _, cost := range append(costs, n, n-1, 0) {
				s.peek(cost, about(0, "another"))
			}
			s.take(n, about(0, "another"))
		}
	}
}
