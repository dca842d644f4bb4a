package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// byKey, byEvent and byOutcomes each take in one way: the decision alone, which has a fast path for one rule and for an
// event that one rule matches, and with the outcome of each rule, which has none.
type (
	byKey      struct{ limiterJudge }
	byEvent    struct{ limiterJudge }
	byOutcomes struct{ limiterJudge }
)

func (l *byKey) take(t int64, key string, cost uint64) ratelimit.Decision {
	return mustRule(l.Limiter, "r").TakeAt(time.Unix(0, t), cost, key)
}

func eventOf(key string) *match.Event {
	var e match.Event
	e.SetString(match.Client, key)
	e.SetString(match.Path, "/")
	return &e
}

func (l *byEvent) take(t int64, key string, cost uint64) ratelimit.Decision {
	return l.TakeAt(time.Unix(0, t), eventOf(key), cost)
}

func (l *byEvent) peek(t int64, key string, cost uint64) ratelimit.Decision {
	return l.PeekN(time.Unix(0, t), eventOf(key), cost)
}

func (l *byEvent) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	r := reserveN(l.Limiter, time.Unix(0, t), eventOf(key), cost)
	return r.Decision, func(t int64) { r.SettleAt(time.Unix(0, t), 0) }
}

func (l *byOutcomes) take(t int64, key string, cost uint64) (d ratelimit.Decision) {
	d, l.outcomes = l.Judge(time.Unix(0, t), keyEvent(l.Limiter, key), cost, l.outcomes[:0])
	return d
}

// bannedRule returns a rule of any kind: half of them have a ban, and some only ban.
func bannedRule(t testing.TB, rnd *rand.Rand) ratelimit.Rule {
	a := ratelimit.Algorithm(rnd.IntN(len(limit.Algorithms())))
	r := limitRule(t, "r", someLimit(rnd, a, 1, 200))
	r.Algorithm, r.CountRefused, r.Shadow = a, rnd.IntN(6) == 0 && a != ratelimit.InFlight, rnd.IntN(12) == 0
	if a == ratelimit.Calendar {
		r.Zone = newYork(t)
	}
	if rnd.IntN(6) == 0 {
		r.Limits = append(r.Limits, someLimit(rnd, a, 1, 200))
	}
	if rnd.IntN(2) == 0 {
		window := max(int64(r.Limits[0].Window()/time.Millisecond), 2)
		span := func() time.Duration { return time.Duration(1+rnd.Int64N(2*window)) * time.Millisecond }
		r.Ban = &ratelimit.Ban{
			After: rnd.Uint64N(40), Of: ratelimit.Cause(rnd.IntN(2)), Extend: rnd.IntN(4) == 0, Factor: 1 + rnd.Float64(),
			Span: span(), For: span(), Max: 24 * 365 * time.Hour, Remember: 4 * span(),
		}
		if r.Ban.Of == ratelimit.Hits && rnd.IntN(4) == 0 {
			r.Limits = nil
		}
	}
	return r
}

// shortWay attacks two limiters with one rule, one by each path, and returns how they differ, if they do.
func shortWay(t testing.TB, rnd *rand.Rand, n int, wrap func(j judge) judge) (o outcome, differs string, bans uint64) {
	r := bannedRule(t, rnd)
	attacked := r
	if r.Limits == nil {
		attacked = limitRule(t, "r", per(max(r.Ban.After, 1), r.Ban.Span)) // what callers aim at
	}
	a := newAttack(0, attacked)
	a.claims, a.held, a.needed, a.turns = a.claims[:1], 0, false, nil
	c := ratelimit.Config{Budget: 8 << 20, Bans: 10_000}
	if a.setBack = rnd.IntN(2) == 0; a.setBack {
		c.Budget = -1
	}
	short := mustLimiter(t, mustSet(t, r), c)
	long := mustLimiter(t, mustSet(t, r), c)
	var quick judge = &byKey{limiterJudge{Limiter: short}}
	if rnd.IntN(2) == 0 {
		other := limitRule(t, "about other paths", per(1, time.Hour))
		other.When.Path = []string{"/other"}
		short = mustLimiter(t, mustSet(t, r, other), c)
		quick = &byEvent{limiterJudge{Limiter: short}}
	}
	tw := &twins{a: wrap(quick), b: &byOutcomes{limiterJudge{Limiter: long}}}
	o = a.run(rnd, tw, n)
	if tw.differs != "" {
		tw.differs += fmt.Sprintf("\nlimits %+v, ban %+v of %+v", r.Limits, r.Ban, r)
	}
	sa, sb := short.Stats().Rules[0], long.Stats().Rules[0]
	bans = sa.BansStarted
	for _, s := range []*ratelimit.RuleStats{&sa, &sb} {
		s.Keys, s.Expired, s.Bans = 0, 0, 0 // these depend on the seeds of the tables
	}
	if tw.differs == "" && sa != sb {
		o.found("the short way has counted %+v, the other %+v", sa, sb)
	}
	return o, tw.differs, bans
}

// TestConcurrentFastPathDecidesAlike compares each decision of the fast path with the general one, under single rules of
// all kinds with bans and without, and the counts of both at the end.
func TestConcurrentFastPathDecidesAlike(t *testing.T) {
	rnd := randtest.New(t)
	rounds, events := 150, 1000
	switch {
	case longForm():
		rounds = 10_000
	case testing.Short():
		rounds, events = 40, 500
	}
	var all outcome
	bans := uint64(0)
	for range rounds {
		o, differs, started := shortWay(t, rnd, events, func(j judge) judge { return j })
		if differs != "" || o.wrong != "" {
			t.Fatal(differs, o.wrong)
		}
		all.add(&o)
		bans += started
	}
	if all.refused < all.arrivals/50 || all.allowed < all.arrivals/50 || bans == 0 {
		t.Errorf("%d allowed, %d refused, %d bans: the test has no teeth", all.allowed, all.refused, bans)
	}
	t.Logf("%d decisions, %d refused, %d bans begun: all alike", all.arrivals, all.refused, bans)
}

// TestShortWayUnderALoweredLimit uses up limits and lowers them by Update, so that keys
// have more used than they may, and compares the ways until the windows are empty.
func TestShortWayUnderALoweredLimit(t *testing.T) {
	rnd := randtest.New(t)
	for i := range limit.Algorithms() {
		for range 20 {
			a := ratelimit.Algorithm(i)
			r := limitRule(t, "r", someLimit(rnd, a, 20, 200))
			r.Algorithm = a
			short, long := mustLimiter(t, mustSet(t, r), ratelimit.Config{}), mustLimiter(t, mustSet(t, r), ratelimit.Config{})
			tw := &twins{a: &byKey{limiterJudge{Limiter: short}}, b: &byOutcomes{limiterJudge{Limiter: long}}}
			now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC).UnixNano()
			for tw.take(now, "k", 1).Allowed {
			}
			lowered := r
			lowered.Limits = []ratelimit.Limit{r.Limits[0]}
			lowered.Limits[0].N, lowered.Limits[0].Burst = 1+rnd.Uint64N(10), 0
			for _, l := range []*ratelimit.Limiter{short, long} {
				must.Do(t, l.Update(mustSet(t, lowered)))
			}
			allowed, step := 0, int64(r.Limits[0].Window()/40)
			for n := range int64(120) {
				if tw.take(now+n*step, "k", 1+rnd.Uint64N(2)).Allowed {
					allowed++
				}
			}
			if tw.differs != "" || allowed == 0 {
				t.Fatalf("%v, %+v lowered to %+v: %d allowed; %s", a, r.Limits[0], lowered.Limits[0], allowed, tw.differs)
			}
		}
	}
}

// careless is a fast path that does not store until when the key is full.
type careless struct{ judge }

func (c careless) take(t int64, key string, cost uint64) ratelimit.Decision {
	d := c.judge.take(t, key, cost)
	if !d.Allowed {
		d.ResetAfter = 0
	}
	return d
}

// TestConcurrentCarelessShortWayIsCaught does the same with a careless one.
func TestConcurrentCarelessShortWayIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	for range 20 {
		if _, differs, _ := shortWay(t, rnd, 1000, func(j judge) judge { return careless{j} }); differs != "" {
			return
		}
	}
	t.Error("nobody notices")
}

// TestBanOfEveryHit bans at the first hit, and again at each: no waiting helps, by any path.
func TestBanOfEveryHit(t *testing.T) {
	for _, limits := range [][]ratelimit.Limit{nil, {per(5, time.Second)}} {
		r := ban(t, "r", ratelimit.Ban{After: 0, Of: ratelimit.Hits, Span: time.Second, For: time.Minute})
		r.Limits = limits
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		for i := range 3 {
			d := takeKeyN(l, at(int64(i)), "k", 1)
			again, _ := l.Judge(at(int64(i)), keyEvent(l, "k"), 1, nil)
			if d.Started != (i == 0) {
				t.Errorf("limits %v, hit %d starts a ban: %v", limits, i, d.Started)
			}
			d.Started = false
			if d.Allowed || d.RetryAfter != ratelimit.Never || !sameDecision(d, again) {
				t.Errorf("limits %v, hit %d: %+v, and %+v with outcomes", limits, i, d, again)
			}
		}
	}
}
