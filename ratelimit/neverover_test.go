package ratelimit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// An attack is how hard callers come at one rule or two: bursts, the edges of
// slots and windows, a nanosecond before and after something leaves, what just
// fills a limit, the first moment at which one may come again, pauses of many
// windows, ever more keys, the clock set back, charges taken back.
type attack struct {
	rules      []ratelimit.Rule
	resolution time.Duration
	setBack    bool // events may come before others of their key
	ones       bool // all costs are 1, which the turns of a queue can be checked for
	begin      int64
	settled    int // one in so many events is reserved, and most of these are taken back

	claims []claim // and then what a refusal needs
	held   int     // how many are claims
	needed bool    // a refusal requires that one of the others is exceeded
	turns  []claim
}

// outcome is the result of an attack.
type outcome struct {
	arrivals, allowed, refused, canceled int

	over    uint64 // the most that a claim was exceeded by
	reached bool   // whether one came up to what it may have
	wrong   string // the first that was not as claimed
}

func (o *outcome) found(format string, args ...any) {
	if o.wrong == "" {
		o.wrong = fmt.Sprintf(format, args...)
	}
}

func newAttack(resolution time.Duration, rules ...ratelimit.Rule) *attack {
	a := &attack{rules: rules, resolution: resolution, begin: 1_700_000_000e9, settled: 16}
	var needs []claim
	a.needed = true
	for i := range rules {
		c, n := claimsOf(&rules[i], resolution)
		a.claims, needs = append(a.claims, c...), append(needs, n...)
		a.needed = a.needed && n != nil
	}
	a.held = len(a.claims)
	a.claims = append(a.claims, needs...)
	if l := rules[0].Limits; rules[0].Algorithm == ratelimit.LeakyBucket && len(rules) == 1 && len(l) == 1 {
		a.ones, a.turns = true, []claim{{span: int64(l[0].Span), most: l[0].N}}
	}
	return a
}

// attackKeys have all lengths that are stored in different ways; the first few are busy, the others make tables grow.
var attackKeys = func() (keys []string) {
	for i := range 4000 {
		key := fmt.Sprint("k", i)
		if i%5 == 1 {
			key = fmt.Sprintf("a key of more than fifteen bytes, number %d", i)
		}
		keys = append(keys, key)
	}
	keys[2] = string(make([]byte, 3000))
	return keys
}()

const busyKeys = 3

// latest is when an attack ends, for times beyond 2220 are all alike.
const latest = 7_200_000_000e9

// canTakeBack reports whether the claims hold when charges are taken back: a
// window that begins with the first event does not move when that one never was.
func (a *attack) canTakeBack() bool {
	return !slices.ContainsFunc(a.rules, func(r ratelimit.Rule) bool {
		return r.Algorithm == ratelimit.Fixed || r.Algorithm == ratelimit.Calendar || r.Algorithm == ratelimit.LeakyBucket
	})
}

// A siege is an attack under way.
type siege struct {
	*attack
	rnd  *rand.Rand
	j    judge
	now  int64
	ws   []*witness // by key
	open []underway
	o    outcome
}

// underway are allowed events that may be taken back.
type underway struct {
	cancel func(t int64)
	w      *witness
	number int
}

// run sends n events to j, or as many as come before latest.
func (a *attack) run(rnd *rand.Rand, j judge, n int) outcome {
	s := &siege{attack: a, rnd: rnd, j: j, now: floorTo(a.begin, max(int64(a.resolution), 1)), ws: make([]*witness, len(attackKeys))}
	for i := 0; i < n && s.now < latest; i++ {
		k := rnd.IntN(busyKeys)
		if rnd.IntN(8) == 0 {
			k += rnd.IntN(1 + i*(len(s.ws)-busyKeys)/n)
		}
		if s.ws[k] == nil {
			s.ws[k] = newWitness(len(a.claims))
			s.ws[k].turns = newWitness(len(a.turns))
		}
		s.event(attackKeys[k], s.ws[k])
		if len(s.open) > 0 && (rnd.IntN(2) == 0 || len(s.open) == 100) {
			s.takeBack()
		}
	}
	return s.o
}

// event sends one.
func (s *siege) event(key string, w *witness) {
	var cost uint64
	var d ratelimit.Decision
	var cancel func(int64)
	s.now, cost = s.next(s.rnd, s.j, w, key, s.now)
	w.newest = max(w.newest, s.now) // what comes earlier is judged then
	if s.canTakeBack() && (s.rules[0].Algorithm == ratelimit.InFlight || s.rnd.IntN(s.settled) == 0) {
		d, cancel = s.j.reserve(s.now, key, cost)
	} else {
		d = s.j.take(s.now, key, cost)
	}
	s.o.arrivals++
	w.refused = 0
	switch {
	case !d.Allowed:
		s.o.refused++
		w.refused = s.now + max(int64(d.RetryAfter), 0)
		s.justify(&s.o, w, cost)
	case cost > 0:
		s.o.allowed++
		if cancel != nil {
			s.open = append(s.open, underway{cancel, w, w.end()})
		}
		s.allow(&s.o, w, cost, d.Delay)
	}
}

// takeBack takes one back that was allowed.
func (s *siege) takeBack() {
	i := s.rnd.IntN(len(s.open))
	u := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	u.cancel(s.now)
	u.w.newest = max(u.w.newest, s.now)
	u.w.takeBack(u.number)
	s.o.canceled++
}

// allow holds an event that was allowed against the claims.
func (a *attack) allow(o *outcome, w *witness, cost uint64, delay time.Duration) {
	w.allow(a.claims, w.newest, cost)
	for i := range a.held {
		o.holds(&a.claims[i], w.sums[i].sum, w.newest)
	}
	if turn := w.newest + int64(delay); a.turns != nil {
		w.turns.allow(a.turns, turn, cost)
		o.holds(&a.turns[0], w.turns.sums[0].sum, turn)
	}
}

// holds notes that so much is in a window of c at time t.
func (o *outcome) holds(c *claim, sum uint64, t int64) {
	o.reached = o.reached || sum == c.most
	if sum > c.most {
		o.over = max(o.over, sum-c.most)
		o.found("%d allowed in a window of %v that ends at %d, at most %d are claimed", sum, time.Duration(c.span), t, c.most)
	}
}

// justify checks that a refusal was needed: with the event, a window would
// exceed its limit.
func (a *attack) justify(o *outcome, w *witness, cost uint64) {
	if !a.needed {
		return
	}
	for i := a.held; i < len(a.claims); i++ {
		if c := &a.claims[i]; w.at(i, c, w.newest)+cost > c.most {
			return
		}
	}
	o.found("cost %d is refused at %d, and would have fitted", cost, w.newest)
}

// next returns when an event of the key comes, and its cost.
func (a *attack) next(rnd *rand.Rand, j judge, w *witness, key string, now int64) (t int64, cost uint64) {
	l := &a.rules[rnd.IntN(len(a.rules))].Limits[0]
	span, resolution := int64(l.Window()), max(int64(a.resolution), 1)
	was := now
	cost = 1
	switch rnd.IntN(26) {
	case 0:
		now += rnd.Int64N(2 * span)
		if rnd.IntN(200) == 0 {
			now += rnd.Int64N(min(span<<rnd.IntN(12), int64(60*24*time.Hour))) // laps of the ring
		}
	case 1, 2:
		now = edge(now, slotWidth(l.Window())) - rnd.Int64N(2)
	case 3:
		now = edge(now, span) - rnd.Int64N(2)
	case 4:
		cost = rnd.Uint64N(l.N + 2)
	case 5:
		cost = max(j.peek(now, key, 0).Remaining, 1) // all that is left
	case 6, 7:
		if w.refused > now {
			now = w.refused - resolution*rnd.Int64N(2)
		}
	case 8:
		if a.setBack {
			now -= rnd.Int64N(span / 4)
		}
	case 9:
		if n := w.sums[0].head - w.gone; n < len(w.allowed) { // the oldest in a window is about to leave it
			now = max(now, w.allowed[n].t+span-rnd.Int64N(3)+1)
		}
	case 10, 11, 12:
		now += rnd.Int64N(span/int64(l.N) + 1)
	case 13:
		now += rnd.Int64N(span/60 + 1)
	}
	if a.ones {
		cost = 1
	}
	if now = floorTo(now, resolution); !a.setBack {
		now = max(now, was)
	}
	return now, cost
}

// someLimit returns a limit for an algorithm, of N from low to high, the low ones
// as likely as the high.
func someLimit(rnd *rand.Rand, a ratelimit.Algorithm, low, high uint64) ratelimit.Limit {
	spans := []time.Duration{time.Millisecond, 7 * time.Millisecond, 60 * time.Millisecond, 997 * time.Millisecond, time.Second, time.Minute, time.Hour}
	n := uint64(float64(low) * math.Pow(float64(high+1)/float64(low), rnd.Float64()))
	l := per(min(n, high), spans[rnd.IntN(len(spans))])
	switch a {
	case ratelimit.Calendar:
		periods := []ratelimit.Period{ratelimit.PerSecond, ratelimit.PerMinute, ratelimit.PerDay, ratelimit.PerMonth}
		l.Span, l.Per = 0, periods[rnd.IntN(len(periods))]
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		l.Burst = rnd.Uint64N(2 * l.N)
	}
	return l
}

// A foe is a kind of attack: on one algorithm with N in a range.
type foe struct {
	name      string
	algorithm ratelimit.Algorithm
	low, high uint64
	tight     bool // the claimed bound is also reached
}

var foes = []foe{
	{"sliding up to 128", ratelimit.Sliding, 1, 128, true},
	{"sliding above 128", ratelimit.Sliding, 129, 2000, true},
	{"exact", ratelimit.Exact, 1, 700, true},
	{"fixed", ratelimit.Fixed, 1, 700, true},
	{"calendar", ratelimit.Calendar, 1, 700, true},
	{"in-flight", ratelimit.InFlight, 1, 200, true},
	{"two-bucket", ratelimit.TwoBucket, 1, 700, false},
	{"gcra", ratelimit.GCRA, 1, 700, false},
	{"leaky-bucket", ratelimit.LeakyBucket, 1, 700, true},
}

// attack returns one of that kind, with one limit or two, alone or with another
// rule, and what times and memory are like.
func (f *foe) attack(t testing.TB, rnd *rand.Rand) (*attack, ratelimit.Config) {
	r := limitRule(t, "r", someLimit(rnd, f.algorithm, f.low, f.high))
	if r.Algorithm = f.algorithm; r.Algorithm == ratelimit.Calendar {
		r.Zone = newYork(t)
	}
	if rnd.IntN(3) == 0 {
		r.Limits = append(r.Limits, someLimit(rnd, f.algorithm, f.low, f.high))
	}
	// Refused events that count are not part of what was allowed, but may fill slots and logs beyond their limit. They may
	// also begin a fixed window.
	r.CountRefused = rnd.IntN(6) == 0 && r.Algorithm != ratelimit.Fixed && r.Algorithm != ratelimit.InFlight
	rules := []ratelimit.Rule{r}
	if rnd.IntN(4) == 0 {
		other := limitRule(t, "other")
		other.Algorithm = []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact, ratelimit.TwoBucket, ratelimit.GCRA}[rnd.IntN(4)]
		other.Limits = []ratelimit.Limit{someLimit(rnd, other.Algorithm, 1, 300)}
		rules = append(rules, other)
	}
	var resolution time.Duration
	if rnd.IntN(4) == 0 && f.algorithm != ratelimit.Calendar {
		resolution = []time.Duration{7, time.Microsecond, time.Millisecond, time.Second}[rnd.IntN(4)]
	}
	a := newAttack(resolution, rules...)
	a.needed = a.needed && !r.CountRefused
	a.settled = 2 << rnd.IntN(5)
	a.begin = []int64{1_700_000_000e9, -1_000_000_000e9, 0}[rnd.IntN(3)] + rnd.Int64N(1e15)
	// Where times go back, keys whose windows are empty must not be evicted, or the witness could not determine the time at
	// which they are judged.
	c := ratelimit.Config{Resolution: resolution, Budget: 32 << 20, Bans: 100}
	if a.setBack = rnd.IntN(2) == 0; a.setBack {
		c.Budget = -1
	}
	return a, c
}

// TestConcurrentNeverOverAsPromised attacks each algorithm with some 25,000 events (1e7 in the long form) and counts the
// allowed ones by brute force. They never exceed the bound in docs/dev/proofs.md, which is N where there is a promise;
// every refusal was needed; and Sliding up to 128 decides as Exact does.
func TestConcurrentNeverOverAsPromised(t *testing.T) {
	n, round := 25_000, 2_500
	switch {
	case longForm():
		n, round = 10_000_000, 50_000
	case testing.Short():
		n, round = 5_000, 500
	}
	for _, f := range foes {
		t.Run(f.name, func(t *testing.T) {
			rnd := randtest.New(t)
			var all outcome
			for all.arrivals < n {
				a, c := f.attack(t, rnd)
				set := mustSet(t, a.rules...)
				l := mustLimiter(t, set, c)
				var j judge = &limiterJudge{Limiter: l}
				var tw *twins
				if f.high <= 128 {
					tw = &twins{a: j, b: &limiterJudge{Limiter: mustLimiter(t, asExact(t, a.rules), c)}}
					j = tw
				}
				o := a.run(rnd, j, round)
				if tw != nil && tw.differs != "" {
					o.found("not as exact: %s", tw.differs)
				}
				for _, s := range l.Stats().Rules {
					if s.Evicted+s.Sketched+s.Full > 0 {
						o.found("keys without memory: the budget of the test is too small")
					}
				}
				if o.wrong != "" {
					t.Fatalf("%s\nrules %+v\nmemory %+v, set back %v", o.wrong, a.rules, c, a.setBack)
				}
				all.add(&o)
			}
			if f.tight && !all.reached {
				t.Errorf("what is claimed was never reached: the test has no teeth")
			}
			if all.allowed < n/50 || all.refused < n/50 {
				t.Errorf("of %d events %d were allowed and %d refused: the test has no teeth", n, all.allowed, all.refused)
			}
			t.Logf("%d arrivals, %d allowed, %d refused, %d taken back: none over", all.arrivals, all.allowed, all.refused, all.canceled)
		})
	}
}

// asExact returns the rules with Exact in place of Sliding up to 128.
func asExact(t testing.TB, rules []ratelimit.Rule) *ratelimit.Set {
	exact := slices.Clone(rules)
	for i := range exact {
		most := slices.MaxFunc(exact[i].Limits, func(a, b ratelimit.Limit) int { return int(a.N) - int(b.N) }).N
		if exact[i].Algorithm == ratelimit.Sliding && most <= 128 {
			exact[i].Algorithm = ratelimit.Exact
		}
	}
	return mustSet(t, exact...)
}

func (o *outcome) add(p *outcome) {
	o.arrivals += p.arrivals
	o.allowed += p.allowed
	o.refused += p.refused
	o.canceled += p.canceled
	o.reached = o.reached || p.reached
}
