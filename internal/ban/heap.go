package ban

import (
	"math"
	"sync/atomic"
)

// A heap orders the entries of a shard: those that hold by when they end, or those that
// ended by when they expire. The first is at the top, and each entry has its place. The
// shard's lock protects it, except next.
type heap struct {
	state state
	g     *generation
	n     int
	next  atomic.Int64 // the time of the first entry, or MaxInt64
}

// time returns the time by which an entry is ordered.
func (h *heap) time(number uint32) int64 {
	if e := &h.g.entries[number]; h.state == held {
		return e.until
	} else {
		return e.expires()
	}
}

// at returns where the number of the i-th entry is.
func (h *heap) at(i int) *uint32 {
	if h.state == ended {
		i = len(h.g.order) - 1 - i
	}
	return &h.g.order[i]
}

// put stores an entry at i.
func (h *heap) put(i int, number uint32) {
	*h.at(i) = number
	h.g.entries[number].place = uint32(i)
}

// add adds an entry.
func (h *heap) add(number uint32) {
	h.g.entries[number].state = h.state
	h.n++
	h.put(h.n-1, number)
	h.fix(h.n - 1)
}

// remove removes the entry at i.
func (h *heap) remove(i int) {
	h.n--
	if last := *h.at(h.n); i < h.n {
		h.put(i, last)
		h.fix(i)
	}
	h.noteNext()
}

// fix moves the entry at i up or down to its place, after its time has changed.
func (h *heap) fix(i int) {
	number := *h.at(i)
	time := h.time(number)
	for i > 0 && h.time(*h.at((i - 1) / 2)) > time {
		h.put(i, *h.at((i - 1) / 2))
		i = (i - 1) / 2
	}
	for {
		child, least := 2*i+1, int64(math.MaxInt64)
		for c := child; c < min(2*i+3, h.n); c++ {
			if t := h.time(*h.at(c)); t < least {
				child, least = c, t
			}
		}
		if least >= time {
			break
		}
		h.put(i, *h.at(child))
		i = child
	}
	h.put(i, number)
	h.noteNext()
}

func (h *heap) noteNext() {
	next := int64(math.MaxInt64)
	if h.n > 0 {
		next = h.time(*h.at(0))
	}
	if h.next.Load() != next {
		h.next.Store(next)
	}
}
