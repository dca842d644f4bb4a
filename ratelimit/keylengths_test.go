package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// A keyMix is lengths of keys that come in random order.
type keyMix []int

// keyMixes are what logs have: IPv4 addresses, IPv6 addresses, paths and long
// query strings, in pure form and together.
var keyMixes = []keyMix{{11, 13, 15}, {39}, {12, 15, 39, 39}, {20, 100, 300}, {1000}, {8, 8, 8, 500}}

func (m keyMix) key(rng *rand.Rand, n int) string {
	key := fmt.Sprintf("%08x", n)
	return key + strings.Repeat("k", m[rng.IntN(len(m))]-len(key))
}

// A keyHolder is a store under test: a limiter with one rule.
type keyHolder struct {
	take  func(now time.Time, key string)
	stats func() (held int, evicted uint64)
	n     int // keys so far
	now   time.Time
}

// fill adds four times as many new keys of a mix as the store then holds, so that all earlier keys are evicted.
func (h *keyHolder) fill(rng *rand.Rand, mix keyMix) (held int) {
	held, before := h.stats()
	for n, evicted := 0, before; held == 0 || n < 4*held || evicted-before < uint64(held); held, evicted = h.stats() {
		for range 100 {
			h.n++
			h.now = h.now.Add(time.Microsecond)
			h.take(h.now, mix.key(rng, h.n))
		}
		n += 100
	}
	return held
}

func newLimiterHolder(t *testing.T, budget int64, r ratelimit.Rule, takes int) *keyHolder {
	s := mustSet(t, r)
	m := must.Get(ratelimit.NewMemory(s, ratelimit.Config{Budget: budget}))(t)
	l := ratelimit.Over(s, m)
	return &keyHolder{now: time.Unix(1_000_000, 0), take: func(now time.Time, key string) {
		for i := range takes {
			takeKeyN(l, now.Add(time.Duration(i)*time.Nanosecond), key, 1)
		}
	}, stats: func() (int, uint64) {
		r := m.Stats().Rules[0]
		return r.Keys, r.Evicted
	}}
}

// A full store holds about as many keys of a mix of lengths as a store that never held others.
func TestKeysHeldAfterOtherLengths(t *testing.T) {
	rule := func(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
		r := limitRule(t, "r", per(n, time.Hour))
		r.Algorithm = a
		return r
	}
	budgets, mixes := []int64{512 << 10, 2 << 20}, 4
	if testing.Short() {
		budgets, mixes = []int64{256 << 10}, 2
	}
	for name, made := range map[string]func(budget int64) *keyHolder{
		"fixed":   func(budget int64) *keyHolder { return newLimiterHolder(t, budget, rule(ratelimit.Fixed, 100), 1) },
		"gcra":    func(budget int64) *keyHolder { return newLimiterHolder(t, budget, rule(ratelimit.GCRA, 100), 1) },
		"sliding": func(budget int64) *keyHolder { return newLimiterHolder(t, budget, rule(ratelimit.Sliding, 5), 1) },
		"sliding times": func(budget int64) *keyHolder {
			return newLimiterHolder(t, budget, rule(ratelimit.Sliding, 60), 6)
		},
		"sliding slots": func(budget int64) *keyHolder {
			return newLimiterHolder(t, budget, rule(ratelimit.Sliding, 1000), 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			seed := randtest.Seed(t)
			rng := rand.New(rand.NewPCG(seed, 0))
			for _, budget := range budgets {
				h := made(budget)
				var before []keyMix
				for range mixes {
					mix := keyMixes[rng.IntN(len(keyMixes))]
					held, fresh := h.fill(rng, mix), made(budget).fill(rng, mix)
					t.Logf("budget %d: %d keys of %v after %v, %d of them alone: ratio %.2f", budget, held, mix, before, fresh, float64(held)/float64(fresh))
					if held < fresh*8/10 {
						t.Errorf("budget %d: %d keys of %v are held after %v, %d if only these come", budget, held, mix, before, fresh)
					}
					before = append(before, mix)
				}
			}
		})
	}
}

// Clients that come every second and stay under half their limit keep their counts
// while a full store sees new keys, first short ones and then long ones.
func TestRegularsAreKeptWhenLongKeysCome(t *testing.T) {
	const regulars, perSecond, seconds = 500, 2500, 20
	algorithms := []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Fixed, ratelimit.GCRA}
	if testing.Short() {
		algorithms = algorithms[:1]
	}
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			r := limitRule(t, "r", per(200, time.Hour))
			r.Algorithm = a
			s := mustSet(t, r)
			m := must.Get(ratelimit.NewMemory(s, ratelimit.Config{Budget: 3 << 19}))(t)
			l, n, rng := ratelimit.Over(s, m), 0, rand.New(rand.NewPCG(1, 1))
			start := time.Unix(1_000_000, 0)
			for second := range 2 * seconds {
				now := start.Add(time.Duration(second) * time.Second)
				for i := range regulars {
					takeKeyN(l, now, fmt.Sprint("regular ", i), 1)
				}
				mix := keyMix{13}
				if second >= seconds {
					mix = keyMix{39, 39, 60}
				}
				for range perSecond {
					n++
					takeKeyN(l, now, mix.key(rng, n), 1)
				}
			}
			if evicted := l.Stats().Rules[0].Evicted; evicted < perSecond {
				t.Fatalf("%d keys were evicted: the store is not full", evicted)
			}
			lost := 0
			for i := range regulars {
				now := start.Add(2 * seconds * time.Second)
				if d := takeKeyN(l, now, fmt.Sprint("regular ", i), 1); d.Remaining > 200-2*seconds+5 {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of %d clients under half their limit were evicted", lost, regulars)
			}
		})
	}
}
