package lately

import (
	"math/rand/v2"
	"time"
)

// A Sampler feeds a [Sampled] from one goroutine. It is the fast way to add:
// between two events that are counted it only counts down.
//
// It keeps the state of its own random numbers, and no lock: it must not be used
// by two goroutines at once. Several Samplers, and the Sampled itself, may be
// used side by side. The zero Sampler is not
// usable: it panics; call [Sampled.Sampler].
type Sampler struct {
	skip    uint64 // events to pass over before one that is counted
	sampled *Sampled
	rnd     rand.PCG
	_       [32]byte // so that no two share a cache line
}

// Sampler returns a Sampler that adds to s, for the use of one goroutine. It
// takes 64 bytes.
func (s *Sampled) Sampler() *Sampler {
	return s.sampler(rand.Uint64(), rand.Uint64())
}

func (s *Sampled) sampler(seed1, seed2 uint64) *Sampler {
	s.made()
	r := &Sampler{sampled: s}
	r.rnd.Seed(seed1, seed2)
	r.draw()
	return r
}

// draw draws how many events are passed over next.
func (r *Sampler) draw() {
	r.skip = geometric(float64(r.rnd.Uint64()>>11)/(1<<53), r.sampled.p)
}

// Add notes n events that happen now: each is counted with probability p.
func (r *Sampler) Add(n uint64) {
	if n <= r.skip {
		r.skip -= n
		return
	}
	r.addSlow(n)
}

func (r *Sampler) addSlow(n uint64) {
	hits := r.hits(n)
	r.sampled.counter.Add(hits)
}

// AddAt notes n events that happened at t; see [Sampled.AddAt].
func (r *Sampler) AddAt(t time.Time, n uint64) {
	if n <= r.skip {
		r.skip -= n
		return
	}
	r.addAtSlow(t, n)
}

func (r *Sampler) addAtSlow(t time.Time, n uint64) {
	hits := r.hits(n)
	r.sampled.counter.AddAt(t, hits)
}

// hits is how many of n events are to be counted, at least one.
//
// REQUIRES: n > r.skip.
func (r *Sampler) hits(n uint64) (hits uint64) {
	if r.sampled == nil {
		panic(zeroValue)
	}
	if r.sampled.p == 1 {
		return n
	}
	for n > r.skip {
		n -= r.skip + 1
		hits++
		r.draw()
	}
	r.skip -= n
	return hits
}
