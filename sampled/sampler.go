package sampled

import (
	"math/rand/v2"
	"time"
)

// A Sampler adds to a [Counter] from one goroutine. It is the fastest way to
// add: it draws one random number for each event that is counted, and between
// two of them it only counts down.
//
// It keeps the state of its own random numbers and has no lock, so two
// goroutines must not use it at once. Several Samplers, and the Counter itself,
// may be used side by side. The zero Sampler is not usable: it panics; call
// [Counter.Sampler].
type Sampler struct {
	skip    uint64 // events to skip before one that is counted
	counter *Counter
	rnd     rand.PCG
	_       [32]byte // so that no two share a cache line
}

// Sampler returns a Sampler that adds to c, for use by one goroutine. It takes
// 64 bytes.
func (c *Counter) Sampler() *Sampler {
	return c.sampler(rand.Uint64(), rand.Uint64())
}

func (c *Counter) sampler(seed1, seed2 uint64) *Sampler {
	c.made()
	s := &Sampler{counter: c}
	s.rnd.Seed(seed1, seed2)
	s.draw()
	return s
}

// draw draws the number of events to skip next.
func (s *Sampler) draw() {
	s.skip = geometric(float64(s.rnd.Uint64()>>11)/(1<<53), s.counter.p)
}

// Add records n events that happen now: each is counted with probability p.
func (s *Sampler) Add(n uint64) {
	if n <= s.skip {
		s.skip -= n
		return
	}
	s.addSlow(n)
}

func (s *Sampler) addSlow(n uint64) {
	hits := s.hits(n)
	s.counter.counted.Add(hits)
}

// AddAt records n events that happened at t; see [Counter.AddAt].
func (s *Sampler) AddAt(t time.Time, n uint64) {
	if n <= s.skip {
		s.skip -= n
		return
	}
	s.addAtSlow(t, n)
}

func (s *Sampler) addAtSlow(t time.Time, n uint64) {
	hits := s.hits(n)
	s.counter.counted.AddAt(t, hits)
}

// hits returns how many of n events to count, at least one.
//
// REQUIRES: n > s.skip.
func (s *Sampler) hits(n uint64) (hits uint64) {
	if s.counter == nil {
		panic(zeroValue)
	}
	if s.counter.p == 1 {
		return n
	}
	for n > s.skip {
		n -= s.skip + 1
		hits++
		s.draw()
	}
	s.skip -= n
	return hits
}
