package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A taker is what the all-or-nothing test holds to account: a limiter, and how
// much it has charged a key under a rule.
type taker interface {
	take(t time.Time, e *match.Event, cost uint64) bool
	charged(rule int, e *match.Event) uint64
}

// fewer divides the limits and the number of decisions in these tests.
func fewer() int {
	if testing.Short() {
		return 10
	}
	return 1
}

// eightRules returns rules on different keys, half of them exact. The limits are chosen so that most rules refuse events
// that the others would allow.
func eightRules(t testing.TB) []ratelimit.Rule {
	var rules []ratelimit.Rule
	for i, f := range []struct {
		n      uint64
		fields string
	}{
		{6000, "client"},
		{7000, "path"},
		{2500, "user"},
		{3000, "client path"},
		{3000, "path host"},
		{6000, "host"},
		{1000, "client user"},
		{17_000, "method"},
	} {
		r := ratelimit.Rule{Name: f.fields, Key: mustKey(t, strings.Fields(f.fields)...), Limits: []ratelimit.Limit{per(f.n/uint64(fewer()), time.Hour)}}
		if i%2 == 0 {
			r.Algorithm = ratelimit.Exact
		}
		rules = append(rules, r)
	}
	return rules
}

// combinations is how many different events combination makes.
const combinations = 240

// combination makes e the n-th event; not all have a user.
func combination(e *match.Event, n int) {
	e.Reset()
	e.SetString(match.Client, []string{"a", "b", "c", "d"}[n%4])
	e.SetString(match.Path, []string{"/x", "/y", "/z"}[n/4%3])
	if n/12%2 == 0 {
		e.SetString(match.User, []string{"u", "v"}[n/24%2])
	}
	e.SetString(match.Host, []string{"h", "i", "j", "k", "l"}[n/48%5])
	e.SetString(match.Method, "GET")
}

// someCombination returns the number of an event. The first values are the most
// frequent, so that their keys are full while others are not.
func someCombination(rnd *rand.Rand) int {
	first := func(n int) int { return rnd.IntN(1 + rnd.IntN(n)) }
	return first(4) + 4*first(3) + 12*rnd.IntN(4) + 48*first(5)
}

// hammer takes random events of random cost from eight goroutines. It returns a sentence for each key that was allowed more
// than its limit, and for each key whose charges differ from what it was allowed.
func hammer(t *testing.T, rules []ratelimit.Rule, tk taker, decisions int) (over, partial []string) {
	rnd := randtest.New(t)
	var allowed [combinations]atomic.Uint64
	var wg sync.WaitGroup
	const goroutines = 8
	for range goroutines {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wg.Go(func() {
			var e match.Event
			for range decisions / goroutines {
				n := someCombination(mine)
				combination(&e, n)
				cost := uint64(1 + mine.IntN(3))
				if tk.take(at(mine.Int64N(1000)), &e, cost) {
					allowed[n].Add(cost)
				}
			}
		})
	}
	wg.Wait()
	total := uint64(0)
	for n := range combinations {
		total += allowed[n].Load()
	}
	if total == 0 || total >= uint64(decisions) {
		t.Errorf("%d of %d allowed: the test has no teeth", total, decisions)
	}
	var e match.Event
	for i, r := range rules {
		sum := make(map[string]uint64)
		event := make(map[string]int) // one with that key
		for n := range combinations {
			combination(&e, n)
			if key, ok := r.Key.Append(nil, &e); ok {
				sum[string(key)] += allowed[n].Load()
				event[string(key)] = n
			}
		}
		for key, want := range sum {
			combination(&e, event[key])
			if want > r.Limits[0].N {
				over = append(over, fmt.Sprintf("rule %s, key %q: allowed %d, above %d", r.Name, key, want, r.Limits[0].N))
			}
			if got := tk.charged(i, &e); got != want {
				partial = append(partial, fmt.Sprintf("rule %s, key %q: charged %d, allowed %d", r.Name, key, got, want))
			}
		}
	}
	return over, partial
}

// memoryTaker is a Limiter over Memory.
type memoryTaker struct {
	*ratelimit.Limiter
	alone [8]atomic.Uint64 // how often each rule refused what all others would allow
}

func (m *memoryTaker) take(t time.Time, e *match.Event, cost uint64) bool {
	d, outcomes := m.Judge(t, e, cost, make([]ratelimit.Outcome, 0, 8))
	refused, by := 0, 0
	for _, o := range outcomes {
		if o.Refused {
			refused, by = refused+1, o.Rule
		}
	}
	if refused == 1 {
		m.alone[by].Add(1)
	}
	return d.Allowed
}

func (m *memoryTaker) charged(rule int, e *match.Event) uint64 {
	_, outcomes := m.Judge(at(1000), e, 0, nil) // a cost of 0 only looks
	for _, o := range outcomes {
		if o.Rule == rule {
			return o.Limit - o.Remaining
		}
	}
	return 0
}

// TestConcurrentAllOrNothing takes events under eight rules on different keys from several goroutines. In the end each key
// must have been charged exactly what was allowed, and no more than its limit: no partial charge, no lost one.
func TestConcurrentAllOrNothing(t *testing.T) {
	rounds, decisions := 1, 1_000_000
	switch {
	case testing.Short():
		rounds, decisions = 4, 100_000/fewer() // in one of them, some rule may never be the only one that refuses
	}
	rules := eightRules(t)
	var alone [8]uint64
	for range rounds {
		tk := &memoryTaker{Limiter: mustLimiter(t, mustSet(t, rules...), ratelimit.Config{})}
		over, partial := hammer(t, rules, tk, decisions)
		for _, sentence := range append(over, partial...) {
			t.Error(sentence)
		}
		for i := range alone {
			alone[i] += tk.alone[i].Load()
		}
	}
	for i := range rules {
		if alone[i] == 0 {
			t.Errorf("rule %s never refused alone: the test has no teeth", rules[i].Name)
		}
	}
}

// stacked has one limiter for each rule and calls one after the other, as stacked middlewares do: a broken control. With
// checkThenAdd it first inspects all and then takes from all; without, it takes from one after the other.
type stacked struct {
	rules        []ratelimit.Rule
	checkThenAdd bool

	mu     sync.Mutex
	counts map[string]uint64
}

func (s *stacked) id(rule int, e *match.Event) (string, bool) {
	key, ok := s.rules[rule].Key.Append(nil, e)
	return fmt.Sprint(rule, " ", string(key)), ok
}

func (s *stacked) take(_ time.Time, e *match.Event, cost uint64) bool {
	for i := range s.rules {
		if id, ok := s.id(i, e); ok && !s.takeOne(id, cost, s.rules[i].Limits[0].N) {
			return false
		}
	}
	return true
}

func (s *stacked) takeOne(id string, cost, n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[id]+cost > n {
		return false
	}
	if s.checkThenAdd {
		s.mu.Unlock()
		runtime.Gosched() // another goroutine has its turn here now and then
		s.mu.Lock()
	}
	s.counts[id] += cost
	return true
}

func (s *stacked) charged(rule int, e *match.Event) uint64 {
	id, _ := s.id(rule, e)
	return s.counts[id]
}

// TestConcurrentBrokenControlsAreCaught runs TestConcurrentAllOrNothing with broken limiters, which must not pass. Their
// faults need concurrent calls, so a busy machine may need several rounds.
func TestConcurrentBrokenControlsAreCaught(t *testing.T) {
	rules := eightRules(t)
	caught := func(round func() bool) bool {
		for range 10 {
			if round() {
				return true
			}
		}
		return false
	}
	if !caught(func() bool {
		over, partial := hammer(t, rules, &stacked{rules: rules, counts: make(map[string]uint64)}, 100_000/fewer())
		if len(over) > 0 {
			t.Errorf("stacked limiters: %d keys over their limit, want none", len(over))
		}
		return len(partial) > 0
	}) {
		t.Error("the partial charges of stacked limiters are not caught")
	}
	if !caught(func() bool {
		over, _ := hammer(t, rules[7:], &stacked{rules: rules[7:], counts: make(map[string]uint64), checkThenAdd: true}, 100_000/fewer())
		return len(over) > 0
	}) {
		t.Error("check-then-add is not caught over its limit")
	}
}
