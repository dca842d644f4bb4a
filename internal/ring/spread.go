package ring

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// A spread is the lanes that adders share out among themselves once they have
// been found in each other's way. It is made then, and has few lanes at first;
// each further time there are more, up to two to four for each P, and after that they
// are dealt out anew, ever more rarely, until nobody meets anybody or nothing
// better can be had.
//
// Which lane an adder takes is a matter of speed alone: any is right.
type spread struct {
	// deal says which lane a token gets: deal*token, shifted right by the low
	// 6 bits of deal. One word, so that it changes in one step.
	deal atomicUint64

	// The lanes in use are the first ones. It is an array and not a slice of
	// its own, to save a step; indexing it through a pointer makes the compiler
	// touch the first element, which here is hardly ever written.
	lanes [maxLanes]lane
}

const (
	maxLanes = 64

	// meetings is how often adders must meet within one slot to be spread. So
	// that an accident now and then does not make a quiet counter grow.
	meetings = 64
)

func (s *spread) pick() *lane {
	deal := s.deal.Load()
	return &s.lanes[(token()*deal)>>(deal&63)%maxLanes]
}

// used returns how many lanes tokens are dealt to.
func (s *spread) used() int { return lanesOf(s.deal.Load()) }

func lanesOf(deal uint64) int { return 1 << (64 - deal&63) }

// newDeal is a random deal to that many lanes, a power of two from 2 to 64.
func newDeal(lanes int) uint64 {
	shift := uint64(64 - bits.TrailingZeros(uint(lanes)))
	return randomDeal()&^63 | shift
}

// limit is how many lanes there are to be at most.
func limit() int {
	return min(maxLanes, 2<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)))
}

// A crowd counts how often adders meet in one slot: 32 bits of the slot, 24
// bits of the count, and in the low 8 bits how often it was acted on. Nothing
// depends on its being exact, so there is no loop.
type crowd struct{ atomic.Uint64 }

// tooDense counts one more meeting in slot and reports whether it is time to
// act. Each time takes twice as many meetings as the one before, once there are
// no more lanes to be had.
func (c *crowd) tooDense(slot int64, patience int) bool {
	v := c.Load()
	if uint32(slot) != uint32(v>>32) {
		c.CompareAndSwap(v, uint64(uint32(slot))<<32|v&0xff)
		return false
	}
	acted := v & 0xff
	need := uint64(meetings) << min(max(0, int(acted)-patience), 16)
	if n := v >> 8 & 0xffffff; n+1 < need {
		c.CompareAndSwap(v, v+1<<8)
		return false
	}
	return c.CompareAndSwap(v, uint64(uint32(slot))<<32|min(acted+1, 0xff))
}

// meet notes that two adders have met in slot, and spreads them if it has
// happened often.
func (r *Ring) meet(slot int64) {
	if r.crowd.tooDense(slot, bits.Len(uint(limit()))) {
		r.Spread()
	}
}

// Spread gives adders lanes of their own, or more of them, or deals them out
// anew, as the ring does by itself when they meet often. It is exported for
// tests: it changes no count.
func (r *Ring) Spread() {
	most := limit()
	s := r.spread.Load()
	if s == nil {
		s = new(spread)
		s.deal.Store(newDeal(min(4, most)))
		r.spread.CompareAndSwap(nil, s)
		return
	}
	old := s.deal.Load()
	lanes := max(lanesOf(old), min(2*lanesOf(old), most)) // never fewer: reads would miss some
	s.deal.CompareAndSwap(old, newDeal(lanes))
}
