package ring

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// A striping is the stripes that adders are assigned to once they have contended. It
// has few stripes at first; each further time there are more, up to two to four for
// each P, and after that they are assigned again, ever more rarely, until nobody
// contends or nothing better can be had.
//
// Which stripe an adder takes is a matter of speed alone: any is right.
type striping struct {
	// assignment maps tokens to stripes: assignment*token, shifted right by
	// the low 6 bits of assignment. One word, so that it changes in one step.
	assignment atomicUint64

	// The stripes in use are the first ones. It is an array and not a slice of
	// its own, to save a step; indexing it through a pointer makes the compiler
	// touch the first element, which here is hardly ever written.
	stripes [maxStripes]stripe
}

const (
	maxStripes = 64

	// minContended is how often adders must contend within one slot to get stripes, so
	// that an accident now and then does not make a quiet counter grow.
	minContended = 64
)

func (s *striping) pick() *stripe {
	assignment := s.assignment.Load()
	return &s.stripes[(token()*assignment)>>(assignment&63)%maxStripes]
}

// Stripe returns which of 1<<bits stripes the calling goroutine is to add to, so that those
// on different cores seldom write to the same cache line. It is for statistics, for
// which stripes without contention cost too little memory to be made on demand.
func Stripe(bits uint) uint64 { return token() * 0x9e3779b97f4a7c15 >> (64 - bits) }

// used returns how many stripes tokens are assigned to.
func (s *striping) used() int { return stripesOf(s.assignment.Load()) }

func stripesOf(assignment uint64) int { return 1 << (64 - assignment&63) }

// newAssignment is a random assignment to that many stripes, a power of two from 2 to 64.
func newAssignment(stripes int) uint64 {
	shift := uint64(64 - bits.TrailingZeros(uint(stripes)))
	return randomAssignment()&^63 | shift
}

// limit is how many stripes there are to be at most.
func limit() int {
	return min(maxStripes, 2<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)))
}

// A contention counts how often adders contend in one slot: 32 bits of the slot, 24
// bits of the count, and in the low 8 bits how often it was acted on. Nothing depends
// on its being exact, so there is no loop.
type contention struct{ atomic.Uint64 }

// exceeded counts one more contended add in slot and reports whether it is time to
// act. Each time takes twice as many as the previous one, when the number of
// stripes has reached its maximum.
func (c *contention) exceeded(slot int64, patience int) bool {
	v := c.Load()
	if uint32(slot) != uint32(v>>32) {
		c.CompareAndSwap(v, uint64(uint32(slot))<<32|v&0xff)
		return false
	}
	acted := v & 0xff
	need := uint64(minContended) << min(max(0, int(acted)-patience), 16)
	if n := v >> 8 & 0xffffff; n+1 < need {
		c.CompareAndSwap(v, v+1<<8)
		return false
	}
	return c.CompareAndSwap(v, uint64(uint32(slot))<<32|min(acted+1, 0xff))
}

// contend notes that two adders have contended in slot, and gives them stripes if it
// has happened often.
func (r *Ring) contend(slot int64) {
	if r.contention.exceeded(slot, bits.Len(uint(limit()))) {
		r.Restripe()
	}
}

// Restripe gives adders separate stripes, or more stripes, or assigns them again, as
// the ring does by itself when they contend often. It is exported for tests: it
// changes no count.
func (r *Ring) Restripe() {
	most := limit()
	s := r.striping.Load()
	if s == nil {
		s = new(striping)
		s.assignment.Store(newAssignment(min(4, most)))
		r.striping.CompareAndSwap(nil, s)
		return
	}
	old := s.assignment.Load()
	stripes := max(stripesOf(old), min(2*stripesOf(old), most)) // never fewer: reads would miss some
	s.assignment.CompareAndSwap(old, newAssignment(stripes))
}
