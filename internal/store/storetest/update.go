package storetest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// updateCases are about rules that change.
var updateCases = []Case{
	{
		"Stale", anyStore, staleCase,
		"After an update, requests for the set before are answered with ErrStale, and change nothing.",
	},
	{
		"UpdateKeeps", anyStore, updateKeepsCase,
		"A rule that counts as before keeps its counts, whatever else of it has changed; one that is new, or gone in between, starts with nothing.",
	},
	{
		"UpdateCarriesTimes", anyStore, updateCarriesTimesCase,
		"Where the times of events are known and the algorithm stays, they are carried into each new limit as they are: from the limit before with the shortest span that is no shorter, or else from the longest.",
	},
	{
		"UpdateCarriesCounts", givenTimes, updateCarriesCountsCase,
		"When the limit of an algorithm that counts what has come is changed, what is used stays used.",
	},
	{
		"UpdateAlgorithm", givenTimes, updateAlgorithmCase,
		"After a change of algorithm, the old limit and the new one both judge for one old span. Within it, another change is an error.",
	},
	{
		"UpdateThereAndBack", anyStore, updateThereAndBackCase,
		"A limit that is lowered and raised again has forgotten nothing: no key gets a second helping.",
	},
	{
		"UpdateBans", anyStore, updateBansCase,
		"Bans, and what counts toward them, outlive an update for as long as their rule is there.",
	},
	{
		"UpdateSettle", anyStore, updateSettleCase,
		"What was charged before an update is given back after it, where it was carried to, and no more than that.",
	},
}

func staleCase(c *check) {
	s := c.session(c.lasting(ratelimit.Sliding, 10), named("second", c.lasting(ratelimit.Sliding, 10)))
	before := s.model.set
	charged, _ := s.take(4, s.all("k")...)
	s.update(c.set(c.lasting(ratelimit.Sliding, 10), named("third", c.lasting(ratelimit.Sliding, 10))), []string{"r"}, nil)
	stale := func(what string, err error) {
		if !errors.Is(err, store.ErrStale) {
			c.fatal("%s for the set before returned %v, want ErrStale", what, err)
		}
	}
	for _, look := range []bool{false, true} {
		stale("Decide", s.decide(&request{Set: before, Now: s.now, Cost: 3, Peek: look, Subjects: s.all("k")}))
	}
	stale("Settle", s.store.Settle(ctx, &settlement{Set: before, At: charged.Now, Now: s.now, Charged: 4, Subjects: charged.Subjects}))
	stale("Reset", s.store.Reset(ctx, before, s.all("k")))
	s.take(1, s.all("k")...)
	// The same rules compiled again are another set.
	again := s.model.set
	s.update(c.set(*again.Rule(0), *again.Rule(1)), []string{"r", "third"}, nil)
	stale("Decide", s.decide(&request{Set: again, Now: s.now, Cost: 1, Subjects: s.all("k")}))
	s.take(1, s.all("k")...)
}

func updateKeepsCase(c *check) {
	for _, a := range c.algorithms() {
		stays := named("stays", c.lasting(a, 20))
		stays.Ban = &ratelimit.Ban{After: 9, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
		s := c.session(stays, named("goes", c.lasting(a, 30)))
		keys := []string{"a", "b", "c", ""}
		for i, key := range keys {
			s.take(uint64(i+2), s.all(key)...)
			s.take(20, s.all(key)...) // a refusal
		}
		ban := *stays.Ban
		ban.For, ban.Factor, ban.Extend = 2*time.Hour, 2, true
		stays.Ban = &ban
		stays.CountRefused, stays.OnStoreFailure = a != ratelimit.InFlight, ratelimit.FailOpen
		stays.When = match.When{Path: []string{"/x*"}}
		s.update(c.set(named("comes", c.lasting(a, 40)), stays), []string{"stays"}, nil)
		for _, key := range keys {
			s.take(1, s.all(key)...)
		}
		stays.Shadow = true
		s.update(c.set(stays, named("goes", c.lasting(a, 30))), []string{"stays"}, nil)
		for _, key := range keys {
			s.take(12, s.all(key)...)
			s.take(12, s.all(key)...)
		}
		// With another key it is another rule.
		key, err := match.NewKey(match.Fold{Off: true}, match.Host.String())
		c.must(err)
		stays.Key = key
		s.update(c.set(stays), nil, nil)
		for _, key := range keys {
			s.take(20, s.all(key)...)
		}
	}
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
			s := &walk{session: c.session(before)}
			steps := 40
			if c.config.Pass != nil {
				steps = 6
			}
			for range steps {
				s.take()
				s.pass(c.units(1) / 12)
			}
			s.carry(after)
			for range steps {
				s.take()
				s.pass(c.units(1) / 9)
			}
		}
	}
}

// carry updates a session of one rule to another whose limits take over from those before.
func (s *session) carry(after ratelimit.Rule) {
	before := map[string][]*window{}
	for p, rec := range s.model.records {
		before[p.key] = rec.limits
	}
	s.update(s.set(after), nil, []string{"r"})
	for p, rec := range s.model.records {
		for _, w := range rec.limits {
			heir(before[p.key], w.span).carry(w, rec.newest)
		}
	}
}

// heir returns the window from which a limit with that span takes over.
func heir(ws []*window, span int64) *window {
	return slices.MinFunc(ws, func(a, b *window) int {
		if a.span < span || b.span < span {
			return cmp.Compare(b.span, a.span)
		}
		return cmp.Compare(a.span, b.span)
	})
}

// carry charges to with what w holds at t.
func (w *window) carry(to *window, t int64) {
	for _, c := range w.charges {
		if w.holds(c.t, t) {
			to.charge(c.t, c.cost)
		}
	}
}

func updateCarriesCountsCase(c *check) {
	const n, cost = 100, 5
	for _, a := range c.algorithms(ratelimit.InFlight) {
		for _, to := range []uint64{n, n / 2, 3 * n} {
			s, after := c.halfUsed(a, n), c.rule("r", c.under(a, to, 60))
			after.Algorithm = a
			s.update(c.set(after), nil, nil)
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
			s.now += 3 * int64(max(after.Limits[0].Window(), time.Minute))
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
	s.now = (c.start()/int64(time.Minute) + 1) * int64(time.Minute)
	step := int64(s.model.set.Rule(0).Limits[0].Window()) / 200
	for range 10 {
		s.take(n/20, about(0, "k"))
		s.now += step
	}
	s.now -= step
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
				window := int64(s.model.set.Rule(0).Limits[0].Window())
				after.Algorithm = b
				s.update(c.set(after), nil, nil)
				got := s.drain()
				if least, most := min(n/2, to), min(n/2+n/20, to); got < least || got > most {
					c.fatal("%v to %v, limit %d to %d: %d were used, and then %d were admitted, want %d to %d", a, b, n, to, n/2, got, least, most)
				}
				third := c.rule("r", c.under(as[(i+1)%len(as)], to, 60))
				third.Algorithm = as[(i+1)%len(as)]
				if err := s.store.Update(ctx, c.set(third), func() { c.fatal("it is published in spite of the error") }); err == nil {
					c.fatal("%v to %v and within a span of it to %v: there is no error", a, b, third.Algorithm)
				}
				s.now += window - int64(s.model.set.Rule(0).Limits[0].Window())/200
				s.drain() // the old limit may say what it likes
				s.now += 3 * int64(max(after.Limits[0].Window(), time.Duration(window)))
				if r := s.raw(to, false, about(0, "k")); !admitted(r) {
					c.fatal("%v to %v: after the old span: %+v", a, b, r.Subjects[0].Outcome)
				}
				s.update(c.set(third), nil, nil)
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
					s.update(c.set(c.lasting(a, to)), nil, nil)
				}
				if got, want := s.drain(), n-3*(n/3); got != want {
					c.fatal("%v: of a limit of %d, %d were used; after it was lowered to %d and raised again, %d more were admitted, want %d",
						a, n, 3*(n/3), low, got, want)
				}
			}
		}
	}
}

func updateBansCase(c *check) {
	bans := func(name string) ratelimit.Rule {
		r := named(name, c.lasting(ratelimit.Sliding, 3))
		r.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
		return r
	}
	s := c.session(bans("stays"), bans("changes"), bans("goes"))
	for range 6 {
		for i := range 3 {
			s.take(1, about(i, "banned"))
		}
	}
	for range 4 {
		s.take(1, about(1, "refused once"))
	}
	s.ban(0, "by hand", c.start()+int64(time.Hour))
	changed := bans("changes")
	changed.Limits[0].N = 4
	was := s.model.records[place{"changes", "refused once"}]
	strikes, log := was.strikes, was.limits[0]
	s.update(c.set(bans("stays"), changed), []string{"stays"}, []string{"changes"})
	rec := s.model.records[place{"changes", "refused once"}]
	rec.strikes = strikes
	log.carry(rec.limits[0], rec.newest)
	for _, key := range []string{"banned", "by hand"} {
		s.take(1, about(0, key))
		s.take(1, about(1, key))
	}
	for range 5 { // one admitted, and of two refusals one is borne
		s.take(1, about(1, "refused once"))
	}
	s.update(c.set(bans("stays"), changed, bans("goes")), []string{"stays", "changes"}, nil)
	for i := range 3 {
		s.take(1, about(i, "banned"))
		s.take(1, about(i, "by hand"))
	}
	s.listed()
}

func updateSettleCase(c *check) {
	for _, a := range logged {
		s := c.session(c.lasting(a, 20), named("goes", c.lasting(a, 20)), named("stays", c.lasting(a, 20)))
		charged, _ := s.take(6, s.all("k")...)
		s.take(2, s.all("k")...)
		subjects := charged.Subjects
		changed := c.lasting(a, 30)
		changed.Limits[0].Span = 36 * time.Hour
		log := s.model.records[place{"r", "k"}].limits[0]
		s.update(c.set(named("stays", c.lasting(a, 20)), changed), []string{"stays"}, nil)
		rec := s.model.records[place{"r", "k"}]
		log.carry(rec.limits[0], rec.newest)
		// As the set has it now: stays is the first, r the second.
		renumbered := []subject{subjects[2], subjects[0]}
		renumbered[0].Outcome.Rule, renumbered[1].Outcome.Rule = 0, 1
		charged.Subjects = renumbered
		s.settle(charged, 1)
		s.look(1, s.all("k")...)
		s.take(12, s.all("k")...)
	}
}
