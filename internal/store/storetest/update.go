package storetest

import (
	"errors"
	"fmt"
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
		"UpdateCarriesTimes", anyStore, updateCarriesTimesCase,
		"Where the times of events are known and the algorithm stays, they are carried into each new limit as they are: from the limit before with the shortest span that is no shorter, or else from the longest.",
	},
	{
		"UpdateCarriesCounts", anyStore, updateCarriesCountsCase,
		"When the limit changes and the algorithm stays, what is used remains used.",
	},
	{
		"UpdateAlgorithm", updatesAtOnce, updateAlgorithmCase,
		"After a change of algorithm, the old limit and the new one both judge for one old span. Within it, another change is an error.",
	},
	{
		"UpdateThereAndBack", anyStore, updateThereAndBackCase,
		"A limit that is lowered and raised again loses no count.",
	},
	{
		"UpdateSettle", anyStore, walking(func(c *check, _ ratelimit.Algorithm) []ratelimit.Rule {
			return c.changingRules(logged, logged[c.rnd.IntN(2)])
		}, (*walk).take, (*walk).take, (*walk).settle, (*walk).update),
		"What was charged before an update is given back after it, where it was carried to, and no more than that.",
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
	s.update(c.set(*again.Rule(0), *again.Rule(1)))
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

func updateCarriesTimesCase(c *check) {
	for _, a := range logged {
		for range 12 {
			before, after := c.randomLimits(a), c.randomLimits(a)
			for i := range before.Limits {
				before.Limits[i].N = min(before.Limits[i].N, 100) // times are known
			}
			s, steps := &walk{session: c.session(before)}, 40
			if c.config.Leaves {
				steps = 6 // so nothing leaves a window: if it does, a store need not notice when it refuses an event
			}
			for range steps {
				s.session.take(s.cost(), s.subjects()...)
				s.pass(units(1) / 12)
			}
			s.session.update(c.set(after))
			for range steps {
				s.take()
				s.pass(units(1) / 9)
			}
		}
	}
}

func updateCarriesCountsCase(c *check) {
	const n, cost = 100, 5
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, to := range []uint64{n, n / 2, 3 * n} {
			s, after := c.halfUsed(a, n), c.rule("r", c.under(a, to, 60))
			after.Algorithm = a
			s.update(c.set(after))
			used, most, least := s.used(0, "k"), min(to, n/2), min(to, n/2-n/20)
			if to > n { // drains faster
				least -= min(least, to/20-n/20)
			}
			if used > most || used < least {
				c.fatal("%v, limit %d to %d: %d were used, and then %d, want %d to %d", a, n, to, n/2, used, least, most)
			}
			if to == n/2 && used == to && admitted(s.raw(1, false, about(0, "k"))) {
				c.fatal("%v: a limit that is used up after the update has admitted another", a)
			}
			s.pass(3 * max(after.Limits[0].Window(), time.Minute))
			if r := s.raw(to, false, about(0, "k")); !admitted(r) {
				c.fatal("%v: what was carried never leaves: %+v", a, r.Subjects[0].Outcome)
			}
		}
	}
}

// halfUsed returns a session of a limit of n, half of which was used within a
// twentieth of its span: a minute, or a second of the calendar that has just begun.
func (c *check) halfUsed(a ratelimit.Algorithm, n uint64) *session {
	before := c.rule("r", c.under(a, n, 60))
	before.Algorithm = a
	s := c.session(before)
	s.at((c.base/int64(time.Minute) + 1) * int64(time.Minute))
	for i := range 10 {
		if i > 0 {
			s.pass(s.model.set.Rule(0).Limits[0].Window() / 200)
		}
		s.take(n/20, about(0, "k"))
	}
	return s
}

func updateAlgorithmCase(c *check) {
	const n = 100
	as := c.algorithms(ratelimit.InFlight)
	for _, a := range as {
		for i, b := range as {
			if a == b {
				continue
			}
			for _, to := range []uint64{n, n / 4, 3 * n} {
				s, after := c.halfUsed(a, n), c.rule("r", c.under(b, to, 60))
				window := s.model.set.Rule(0).Limits[0].Window()
				after.Algorithm = b
				s.update(c.set(after))
				got := s.drain()
				if least, most := min(n/2, to), min(n/2+n/20, to); got < least || got > most {
					c.fatal("%v to %v, limit %d to %d: %d were used, and then %d were admitted, want %d to %d", a, b, n, to, n/2, got, least, most)
				}
				third := c.rule("r", c.under(as[(i+1)%len(as)], to, 60))
				third.Algorithm = as[(i+1)%len(as)]
				if err := s.store.Update(ctx, c.set(third), func() { c.fatal("published was called in spite of the error") }); err == nil {
					c.fatal("%v to %v and within a span of it to %v: there is no error", a, b, third.Algorithm)
				}
				s.pass(window - s.model.set.Rule(0).Limits[0].Window()/200)
				s.drain() // whatever the old limit decides
				s.pass(3 * max(after.Limits[0].Window(), window))
				if r := s.raw(to, false, about(0, "k")); !admitted(r) {
					c.fatal("%v to %v: after the old span: %+v", a, b, r.Subjects[0].Outcome)
				}
				s.update(c.set(third))
			}
		}
	}
}

// drain takes until it is refused, and returns how many were admitted.
func (s *session) drain() (n uint64) {
	for admitted(s.raw(1, false, about(0, "k"))) {
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
					c.fatal("%v: of a limit of %d, %d were used; after it was lowered to %d and raised again, %d more were admitted, want %d",
						a, n, 3*(n/3), low, got, want)
				}
			}
		}
	}
}
