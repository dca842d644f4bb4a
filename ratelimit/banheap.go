package ratelimit

import (
	"math"
	"sync/atomic"
)

// A banHeap has the numbers of entries, the one whose ban ends first at the
// top. Each entry knows its place. A banHeap is under the lock of its shard,
// but for oldest.
type banHeap struct {
	numbers []uint32
	hand    int          // where turn goes on
	oldest  atomic.Int64 // when the ban at the top ends
}

// room makes room for n numbers.
func (h *banHeap) room(n int) { h.numbers = append(make([]uint32, 0, n), h.numbers...) }

// add adds an entry, which is then to be settled.
func (h *banHeap) add(t *banTable, number uint32) {
	t.entry(number).setHeapAt(len(h.numbers))
	h.numbers = append(h.numbers, number)
}

// remove removes the entry at i.
func (h *banHeap) remove(t *banTable, i int) {
	last := len(h.numbers) - 1
	number := h.numbers[last]
	h.numbers = h.numbers[:last]
	if i < last {
		h.put(t, i, number)
		h.settle(t, i)
	}
	h.noteOldest(t)
}

// settle moves the entry at i up or down to where it belongs.
func (h *banHeap) settle(t *banTable, i int) {
	number := h.numbers[i]
	until := t.entry(number).until()
	for i > 0 && t.entry(h.numbers[(i-1)/2]).until() > until {
		h.put(t, i, h.numbers[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		first, end := 2*i+1, int64(math.MaxInt64)
		for down := first; down < min(2*i+3, len(h.numbers)); down++ {
			if at := t.entry(h.numbers[down]).until(); at < end {
				first, end = down, at
			}
		}
		if end >= until {
			break
		}
		h.put(t, i, h.numbers[first])
		i = first
	}
	h.put(t, i, number)
	h.noteOldest(t)
}

// over calls f for the entries from i down whose ban is over at now.
func (h *banHeap) over(t *banTable, now int64, i int, f func(e *banEntry)) {
	if i >= len(h.numbers) {
		return
	}
	if e := t.entry(h.numbers[i]); e.until() <= now {
		f(e)
		h.over(t, now, 2*i+1, f)
		h.over(t, now, 2*i+2, f)
	}
}

// put places an entry at i.
func (h *banHeap) put(t *banTable, i int, number uint32) {
	h.numbers[i] = number
	t.entry(number).setHeapAt(i)
}

// noteOldest writes down when the ban at the top ends.
func (h *banHeap) noteOldest(t *banTable) {
	oldest := int64(math.MaxInt64)
	if len(h.numbers) > 0 {
		oldest = t.entry(h.numbers[0]).until()
	}
	if h.oldest.Load() != oldest {
		h.oldest.Store(oldest)
	}
}

// turn moves the hand on by one and returns the entry there.
func (h *banHeap) turn() (number uint32, ok bool) {
	if len(h.numbers) == 0 {
		return 0, false
	}
	if h.hand++; h.hand >= len(h.numbers) {
		h.hand = 0
	}
	return h.numbers[h.hand], true
}
