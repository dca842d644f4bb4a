package lately

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MinSample is the smallest share of events that a [Sampled] can be told to
// look at.
const MinSample = 1e-9

// A Sampled counts a share p of the events in one [Window], chosen at random,
// and tells from them how many there were and how far off that may be. It is
// for floods in which even the one atomic step of a [Counter] is too much.
//
// Every event is counted with probability p, independently of all others. With
// k counted, the estimate is k/p. It is unbiased: right on average, for any p.
// Its standard error is sqrt(k(1-p))/p, so 10,000 counted events give 1 %, and
// 100 give 10 %, however many there were; see [Estimate.Interval]. On top of
// that comes the edge of the window, as with any Counter, see [Sampled.Bounds].
//
// An event that is not counted costs a random number, and needs no clock; one
// that is costs what it does in a Counter. A goroutine that adds much takes a
// [Sampler] of its own: it draws one random number for each event that is
// counted, the number of events to pass over, and then just counts down. Nothing
// allocates but the first event counted, which takes the memory of a Counter.
//
// All methods may be called at any time by any number of goroutines. The zero
// Sampled is not usable: it panics; call
// [NewSampled]. A Sampled must not be copied.
//
// When every event must be counted, as for a limit, use a Counter. Passing over
// a geometrically distributed number of records instead of drawing for each is
// from Fan, Muller and Rezucha (1962) and Vitter (1984).
type Sampled struct {
	counter *Counter
	p       float64
	least   uint64 // of 64 random bits, the smallest number that counts: p is (2^64-least) / 2^64
}

// NewSampled returns an empty Sampled for the window w that counts a share p of
// the events, from MinSample to 1. The error says what is wrong and what is
// allowed.
func NewSampled(w Window, p float64) (*Sampled, error) {
	if !(p >= MinSample && p <= 1) { // so written, NaN is wrong too
		return nil, fmt.Errorf("lately: sampled share p = %v: must be from %v to 1", p, MinSample)
	}
	c, err := NewCounter(w)
	if err != nil {
		return nil, err
	}
	s := &Sampled{counter: c, p: p}
	if p < 1 {
		s.least = -uint64(math.Ldexp(p, 64))
	}
	return s, nil
}

// P returns the share of events that is counted.
func (s *Sampled) P() float64 { return s.p }

// Counter returns the Counter of the events that s has counted, about a share p
// of all. It tells the window, the slots, and what was refused.
func (s *Sampled) Counter() *Counter { return s.counter }

// Add notes n events that happen now: each is counted with probability p. It
// costs a random number for one event, and for several, one for each that is
// counted.
func (s *Sampled) Add(n uint64) {
	if hits := s.hits(n); hits > 0 {
		s.counter.Add(hits)
	}
}

// AddAt notes n events that happened at t. Those that are to be counted, and
// only those, are refused if they are late or future, as [Counter.AddAt] does.
func (s *Sampled) AddAt(t time.Time, n uint64) {
	if hits := s.hits(n); hits > 0 {
		s.counter.AddAt(t, hits)
	}
}

// made returns the counter, which the zero Sampled has not.
func (s *Sampled) made() *Counter {
	if s.counter == nil {
		panic(zeroValue)
	}
	return s.counter
}

// hits is how many of n events are to be counted.
func (s *Sampled) hits(n uint64) (hits uint64) {
	if n == 1 {
		if rand.Uint64() < s.least {
			return 0
		}
		s.made() // the zero Sampled counts every event, and so comes here
		return 1
	}
	if s.least == 0 {
		s.made()
		return n
	}
	for skip := geometric(rand.Float64(), s.p); n > skip; skip = geometric(rand.Float64(), s.p) {
		n -= skip + 1
		hits++
	}
	return hits
}

// geometric turns u, uniform in [0, 1), into the number of events to pass over
// before one that is counted: n with probability p(1-p)^n.
func geometric(u, p float64) uint64 {
	n := math.Log(1-u) / math.Log1p(-p) // for p = 1 it is a number over infinity, so 0
	return uint64(min(n, 1<<62))
}

// Sum returns the estimate for the window that ends now, leaving out the oldest
// slot, which has partly expired.
func (s *Sampled) Sum() Estimate { return Estimate{s.made().Sum(), s.p} }

// SumAt returns the estimate for the window that ends at t; see
// [Counter.SumAt].
func (s *Sampled) SumAt(t time.Time) Estimate { return Estimate{s.made().SumAt(t), s.p} }

// Bounds returns the estimates for what the true count of the window that ends
// now lies between, the oldest slot left out and taken in; see
// [Counter.Bounds].
func (s *Sampled) Bounds() (lo, hi Estimate) {
	l, h := s.made().Bounds()
	return Estimate{l, s.p}, Estimate{h, s.p}
}

// BoundsAt returns the estimates for the bounds of the window that ends at t;
// see [Counter.BoundsAt].
func (s *Sampled) BoundsAt(t time.Time) (lo, hi Estimate) {
	l, h := s.made().BoundsAt(t)
	return Estimate{l, s.p}, Estimate{h, s.p}
}
