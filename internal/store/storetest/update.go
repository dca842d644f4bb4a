package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// updateCases are about rules that change.
var updateCases = []Case{
	{
		"Stale", anyStore, staleCase,
		"After an update, requests for the set before are answered with ErrStale, and change nothing.",
	},
	{
		"UpdateKeeps", anyStore, walking(func(c *check, a ratelimit.Algorithm) []ratelimit.Rule {
			return c.changingRules(c.algorithms(), a)
		}, (*walk).take, (*walk).take, (*walk).take, (*walk).peek, (*walk).ban, (*walk).update),
		"A rule whose limits and key stay keeps its counts, its bans and what counts toward them, even if other fields change. A rule that is new, or was missing in between, starts empty.",
	},
	{
		"UpdateCarries", anyStore, updateCarriesCase,
		"When limits or their algorithm change, each new limit is charged with what a limit before still counted, at the times of the events or the latest at which they may have come, and judges with that: from the same limit, or else from the one with the shortest span that is no shorter, or else from the longest. Nothing is carried to or from what is under way.",
	},
	{
		"UpdateThereAndBack", anyStore, updateThereAndBackCase,
		"A limit that is lowered and raised again loses no count.",
	},
	{
		"UpdateSettle", anyStore, walking(func(c *check, _ ratelimit.Algorithm) []ratelimit.Rule {
			return c.changingRules(logged, logged[c.rnd.IntN(2)])
		}, (*walk).take, (*walk).take, (*walk).settle, (*walk).update),
		"What was charged before an update is given back after it under the rules whose limits have stayed, and under no others.",
	},
}

func staleCase(c *check) {
	s := c.session(c.lasting(ratelimit.Sliding, 10), named("second", c.lasting(ratelimit.Sliding, 10)))
	before := s.model.set
	charged, _ := s.take(4, s.all("k")...)
	s.update(c.set(c.lasting(ratelimit.Sliding, 10), named("third", c.lasting(ratelimit.Sliding, 10))))
	stale := func(what string, err error) {
		if !errors.Is(err, store.ErrStale) {
			c.fatal("%s for the set before returned %v, want ErrStale", what, err)
		}
	}
	for _, peek := range []bool{false, true} {
		stale("Decide", s.decide(&request{Set: before, Now: s.now, Cost: 3, Peek: peek, Subjects: s.all("k")}))
	}
	stale("Settle", s.store.Settle(ctx, &settlement{Set: before, At: charged.Now, Now: s.now, Charged: 4, Subjects: charged.Subjects}))
	for _, change := range []store.Change{store.Charge, store.Refund, store.Reset} {
		stale("Adjust", s.store.Adjust(ctx, &adjustment{Change: change, Set: before, Key: []byte("k"), N: 1, Now: s.now}))
	}
	s.take(1, s.all("k")...)
	// The same rules compiled again are another set.
	again := s.model.set
	s.update(c.set(*again.Rules()[0], *again.Rules()[1]))
	stale("Decide", s.decide(&request{Set: again, Now: s.now, Cost: 1, Subjects: s.all("k")}))
	s.take(1, s.all("k")...)
}

// changingRules returns rules that an update may change: the first with the algorithm a,
// others with one of as.
func (c *check) changingRules(as []ratelimit.Algorithm, a ratelimit.Algorithm) (rules []ratelimit.Rule) {
	for i := range uint64(3) {
		r := named(fmt.Sprint("r", i), c.lasting(a, 20+10*i))
		r.Ban = &ratelimit.Ban{After: c.rnd.Uint64N(6), Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
		rules = append(rules, r)
		a = as[c.rnd.IntN(len(as))]
	}
	return rules
}

// logged are the algorithms that keep times.
var logged = []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact}

// updateCarriesCase changes each algorithm to each, and the limits with it. What comes before
// is charged, since a store need not notice when it charges nothing.
func updateCarriesCase(c *check) {
	for _, a := range c.algorithms() {
		for _, b := range c.algorithms() {
			w := &walk{session: c.session(c.randomLimits(a))}
			for range 12 {
				cost, subjects := max(w.cost(), 1), w.subjects()
				if _, ok := w.session.peek(cost, slices.Clone(subjects)...); ok {
					w.session.take(cost, subjects...)
				}
				w.pass(units(1) / 12)
			}
			after := c.randomLimits(b)
			for i := range after.Limits { // full buckets are empty after whole spans: a store may round them
				l := &after.Limits[i]
				l.Burst = (l.Burst + l.N - 1) / l.N * l.N
			}
			w.session.update(c.set(after))
			for range 25 {
				w.take()
				w.pass(units(1) / 9)
			}
		}
	}
}

// drain takes until it is refused, and returns how many were allowed.
func (s *session) drain() (n uint64) {
	for allowed(s.raw(1, false, about(0, "k"))) {
		n++
	}
	return n
}

func updateThereAndBackCase(c *check) {
	for _, a := range c.algorithms(ratelimit.GCRA, ratelimit.LeakyBucket) {
		for _, n := range []uint64{40, 64, 90, 1000} {
			for _, low := range []uint64{0, 30} {
				s := c.session(c.lasting(a, n))
				for range 3 {
					s.take(n/3, about(0, "k"))
				}
				for _, to := range []uint64{low, n, low + 1, n} {
					s.update(c.set(c.lasting(a, to)))
				}
				if got, want := s.drain(), n-3*(n/3); got != want {
					c.fatal("%v: of a limit of %d, %d were used; after it was lowered to %d and raised again, %d more were allowed, want %d",
						a, n, 3*(n/3), low, got, want)
				}
			}
		}
	}
}
