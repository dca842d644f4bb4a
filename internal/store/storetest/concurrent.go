package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// concurrentCases are about requests at the same time.
var concurrentCases = []Case{
	{
		"ConcurrentTakes", anyStore, concurrentTakesCase,
		"With any number of concurrent takes, exactly as many are allowed as the limit allows.",
	},
	{
		"ConcurrentRules", anyStore, concurrentRulesCase,
		"After concurrent requests for several rules and keys, each key has been charged what was allowed, and no more than its limit.",
	},
	{
		"PartialCharge", atOnce, partialChargeCase,
		"No concurrent request sees a request charged to one of its subjects and not to another, or a refused request charged.",
	},
	{
		"ConcurrentSettles", anyStore, concurrentSettlesCase,
		"With any number of concurrent requests, no more are in flight than the limit allows, and none after all were settled.",
	},
	{
		"ConcurrentBan", anyStore, concurrentBanCase,
		"Of concurrent hits, exactly one starts the ban.",
	},
	{
		"ConcurrentUpdates", anyStore, concurrentUpdatesCase,
		"While rules change, each request is judged under one set or answered with ErrStale; counts are neither lost nor doubled, and no request waits forever.",
	},
}

// goroutines is the number of concurrent goroutines.
const goroutines = 8

// together runs f in some goroutines at once, each with its own random numbers,
// and waits for them.
func (c *check) together(f func(g int, rnd *rand.Rand)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for g := range goroutines {
		rnd := rand.New(rand.NewPCG(c.rnd.Uint64(), 1))
		wg.Go(func() {
			<-start
			f(g, rnd)
		})
	}
	close(start)
	wg.Wait()
}

// attempt is raw for any goroutine.
func (s *session) attempt(cost uint64, peek bool, subjects ...subject) (r *request, ok bool) {
	r = &request{Set: s.model.set, Now: s.now, Cost: cost, Peek: peek, Subjects: subjects}
	if err := s.decide(r); err != nil {
		s.complain("Decide returned %w", err)
		return r, false
	}
	return r, allowed(r)
}

func concurrentTakesCase(c *check) {
	for _, a := range c.algorithms() {
		for _, n := range []uint64{1, 50, 300} {
			for _, keys := range []int{1, 3} {
				r := c.lasting(a, n)
				if n > 1 && a != ratelimit.Calendar {
					r.Limits = append(r.Limits, ratelimit.Limit{N: n + 1, Span: 48 * time.Hour})
				}
				s := c.session(r)
				allowedOf := make([]atomic.Uint64, keys)
				each := int(n)*keys/goroutines + keys*4
				c.together(func(_ int, rnd *rand.Rand) {
					for i := range each {
						key := i % keys
						if _, ok := s.attempt(1, false, about(0, fmt.Sprint("k", key))); ok {
							allowedOf[key].Add(1)
						}
					}
				})
				for key := range keys {
					if got := allowedOf[key].Load(); got != n {
						c.fatal("%v: %d allowed of key %d at once, want the limit of %d", a, got, key, n)
					}
				}
			}
		}
	}
}

func concurrentRulesCase(c *check) {
	const keys = 3
	algorithms := c.algorithms()
	var rules []ratelimit.Rule
	for i := range 8 {
		a := algorithms[c.rnd.IntN(len(algorithms))]
		rules = append(rules, named(fmt.Sprint("r", i), c.lasting(a, 100+c.rnd.Uint64N(300))))
	}
	s := c.session(rules...)
	var charged [8][keys]atomic.Uint64
	c.together(func(_ int, rnd *rand.Rand) {
		for range 3 * c.config.Steps {
			var subjects []subject
			for i := range rules {
				if rnd.IntN(2) == 0 {
					subjects = append(subjects, about(i, fmt.Sprint("k", rnd.IntN(keys))))
				}
			}
			if len(subjects) == 0 {
				continue
			}
			cost := 1 + rnd.Uint64N(3)
			r, ok := s.attempt(cost, false, subjects...)
			if !ok {
				continue
			}
			actual, over := cost, rnd.IntN(10) == 0
			if over {
				actual = rnd.Uint64N(cost + 1)
				s.correct(r, actual)
			}
			for i := range subjects {
				rule, key := subjects[i].Outcome.Rule, subjects[i].Key[1]-'0'
				if rules[rule].Algorithm != ratelimit.InFlight || !over {
					charged[rule][key].Add(actual)
				}
			}
		}
	})
	for i := range rules {
		for key := range keys {
			used, want := s.used(i, fmt.Sprint("k", key)), charged[i][key].Load()
			if used != want {
				c.complain("rule %d (%v) has charged key %d with %d, allowed were %d", i, rules[i].Algorithm, key, used, want)
			}
			if n := rules[i].Limits[0].N; want > n {
				c.complain("rule %d (%v) has allowed %d of key %d, above its limit of %d", i, rules[i].Algorithm, want, key, n)
			}
		}
	}
}

func partialChargeCase(c *check) {
	const n = 5000
	s := c.session(c.lasting(ratelimit.Sliding, n), named("second", c.lasting(ratelimit.Sliding, n)), named("none", c.lasting(ratelimit.Sliding, 0)))
	rounds := 4 * c.config.Steps
	c.together(func(g int, rnd *rand.Rand) {
		for range rounds {
			switch g % 4 {
			case 0: // both
				s.attempt(1, false, about(0, "a"), about(1, "b"))
			case 1: // refused by the last
				s.attempt(1, false, about(0, "c"), about(1, "c"), about(2, "k"))
			case 2:
				r, _ := s.attempt(0, true, about(0, "a"), about(1, "b"))
				if a, b := r.Subjects[0].Outcome.Remaining, r.Subjects[1].Outcome.Remaining; a != b {
					s.complain("of two keys that are only ever charged together, %d and %d are left", a, b)
				}
			case 3:
				r, _ := s.attempt(0, true, about(1, "c"), about(0, "c"))
				if a, b := r.Subjects[0].Outcome.Remaining, r.Subjects[1].Outcome.Remaining; a != n || b != n {
					s.complain("of two keys whose every request is refused, %d and %d are left, want %d", a, b, n)
				}
			}
		}
	})
}

func concurrentSettlesCase(c *check) {
	for _, a := range []ratelimit.Algorithm{ratelimit.InFlight, ratelimit.Exact, ratelimit.Sliding} {
		for _, n := range []uint64{3, 70} {
			s := c.session(c.lasting(a, n))
			var under atomic.Int64
			c.together(func(_ int, rnd *rand.Rand) {
				var mine []*request
				for range 2 * c.config.Steps {
					if r, ok := s.attempt(1, false, about(0, "k")); ok {
						if now := under.Add(1); now > int64(n) {
							s.complain("%v: %d are charged under a limit of %d", a, now, n)
						}
						mine = append(mine, r)
					}
					if len(mine) > rnd.IntN(12) {
						under.Add(-1)
						s.correct(mine[0], 0)
						mine = mine[1:]
					}
				}
				for _, r := range mine {
					under.Add(-1)
					s.correct(r, 0)
				}
			})
			if used := s.used(0, "k"); used != 0 {
				c.fatal("%v: all was given back, and %d are used of %d", a, used, n)
			}
		}
	}
}

func concurrentBanCase(c *check) {
	r := c.rule("bans")
	r.Ban = &ratelimit.Ban{After: 20, Span: time.Hour, For: time.Hour, Factor: 2}
	s := c.session(r)
	for key := range 10 {
		var allowed, started, banned atomic.Uint64
		c.together(func(int, *rand.Rand) {
			for range 6 {
				r, ok := s.attempt(1, false, about(0, fmt.Sprint(key)))
				switch o := r.Subjects[0].Outcome; {
				case ok:
					allowed.Add(1)
				case o.Started:
					started.Add(1)
				case o.Banned:
					banned.Add(1)
				}
			}
		})
		if allowed.Load() != 20 || started.Load() != 1 || banned.Load() != 27 {
			c.fatal("of 48 hits at once, %d were allowed, %d began a ban, %d were refused by one; want 20, 1 and 27",
				allowed.Load(), started.Load(), banned.Load())
		}
	}
}

func concurrentUpdatesCase(c *check) {
	const keys, changes = 20, 8
	for _, a := range c.algorithms(ratelimit.InFlight) {
		s := c.session(c.lasting(a, 200))
		var sets []*ratelimit.Set
		for i := range uint64(changes) {
			sets = append(sets, c.set(named("other", c.lasting(a, 10+i)), c.lasting(a, 200+i%3)))
		}
		var current atomic.Pointer[ratelimit.Set]
		current.Store(s.model.set)
		var allowedOf [keys]atomic.Uint64
		var done atomic.Bool
		var updates sync.WaitGroup
		updates.Go(func() {
			defer done.Store(true)
			for _, set := range sets {
				if err := s.store.Update(ctx, set, func() { current.Store(set) }); err != nil {
					s.complain("Update returned %w", err)
				}
				runtime.Gosched()
			}
		})
		c.together(func(_ int, rnd *rand.Rand) {
			for i := 0; i < 100 || !done.Load(); i++ {
				key := rnd.IntN(keys)
				set := current.Load()
				r := &request{Set: set, Now: s.now, Cost: 1, Subjects: []subject{about(len(set.Rules())-1, fmt.Sprint("k", key))}}
				switch err := s.decide(r); {
				case errors.Is(err, store.ErrStale):
				case err != nil:
					s.complain("Decide returned %w", err)
				case allowed(r):
					allowedOf[key].Add(1)
				}
				runtime.Gosched() // one of them updates
			}
		})
		updates.Wait()
		s.model.set = current.Load()
		for key := range keys {
			o := s.raw(0, true, about(1, fmt.Sprint("k", key))).Subjects[0].Outcome
			used, want := o.Limit-o.Remaining, allowedOf[key].Load()
			if want > 202 || used != min(want, o.Limit) {
				c.fatal("%v: after %d updates %d are used of %d, and %d were allowed", a, changes, used, o.Limit, want)
			}
		}
	}
}
