package sketch

import (
	"iter"
	"math"
	"time"
)

// Held is one key of a [Window] with its part locked, from Lock to Unlock. It
// is used by one goroutine.
type Held struct {
	w  *Window
	p  *part
	at [rows]int // the first word of the key's cell in each row
}

// Unlock unlocks the part. The Held must not be used after it.
func (h *Held) Unlock() { h.p.mu.Unlock() }

// Used returns how much the key was charged with in (t-span, t], or more. It
// counts what was charged at times after t as well. It returns math.MaxUint64
// if that is unknown.
func (h *Held) Used(t int64) uint64 {
	used, _ := h.walk(t, 0)
	return used
}

// Wait returns how long after t it takes until cost fits under n if nothing is
// charged meanwhile: 0 if it does now, Never if cost is above n.
func (h *Held) Wait(t int64, n, cost uint64) time.Duration {
	if cost > n {
		return Never
	}
	used, keep := h.walk(t, n-cost)
	if used <= n-cost {
		return 0
	}
	return time.Duration(h.w.gone(keep) - t)
}

// Reset returns how long after t it takes until the key's count is 0 if nothing
// is charged meanwhile.
func (h *Held) Reset(t int64) time.Duration { return h.Wait(t, 0, 0) }

// Charge counts cost for the key at time t, whether it is within the limit or
// not.
func (h *Held) Charge(t int64, cost uint64) {
	if cost == 0 {
		return
	}
	w := h.w
	pane := w.pane(t)
	bit, least := w.bit(pane), w.most()
	for _, at := range h.at {
		if c := w.words[at : at+w.cell.words]; pane > newest(c)-w.places {
			w.age(c, pane)
			least = min(least, w.count(c, bit))
		}
	}
	raised := least + min(cost, w.most()-least)
	for _, at := range h.at {
		if c := w.words[at : at+w.cell.words]; pane > newest(c)-w.places {
			w.raise(c, bit, raised)
		}
	}
	h.p.newest = max(h.p.newest, t)
	for last := w.last.Load(); last < pane && !w.last.CompareAndSwap(last, pane); {
		last = w.last.Load()
	}
}

// HandOn returns what the key may have been charged with in the window at t, as
// times and counts, oldest first, for moving the key to a record: a record that is
// charged with these counts at these times, in this order, allows nothing that it
// would not allow with the true ones. The last time is t, or later if a later one was
// charged in the part meanwhile. A count of math.MaxUint64 stands for one that is
// unknown. The sequence is valid until Unlock. The charges stay in the Window as
// well, until they expire.
//
// Another goroutine may have looked for the record just before it was added, and be
// about to charge the key here. So a goroutine that charges a key here checks, with
// the lock held, whether the key has a record by now, and starts again if it has. A
// goroutine that adds the record publishes it, locked, before HandOn, and unlocks it
// when it is charged.
func (h *Held) HandOn(t int64) iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		w, r := h.w, h.span(t)
		// All charges of a pane lie at its last time or before, and nothing
		// has been charged in the part after newest.
		newest := max(t, h.p.newest)
		last := func(pane int64) int64 { return min((pane-paneBias+1)*w.width-1, newest) }
		if r.unknown && !yield(last(r.oldest-1), math.MaxUint64) {
			return
		}
		for k := r.oldest; k <= r.newest; k++ {
			if n := h.least(&r, k, w.bit(k)); n > 0 && !yield(last(k), n) {
				return
			}
		}
	}
}

// reach is the panes of the window at some time that a key may have been
// charged in.
type reach struct {
	oldest, newest int64
	unknown        bool        // there are older ones in the window, which no cell knows
	known          [rows]int64 // the oldest pane that the cell of each row knows
}

// span returns the panes of the window at t. The newest is the newest of the
// cell that was charged least lately: after it, the key was charged with
// nothing.
func (h *Held) span(t int64) (r reach) {
	w := h.w
	first := w.oldest(t)
	r.newest = math.MaxInt64
	for i, at := range h.at {
		last := newest(w.words[at:])
		r.newest = min(r.newest, last)
		r.known[i] = last - w.places + 1
	}
	r.oldest = max(first, r.newest-w.places+1)
	r.unknown = r.oldest > first
	return r
}

// least returns the smallest count of pane, which is at bit, endless for what
// did not fit. One cell knows it at least.
func (h *Held) least(r *reach, pane int64, bit uint) uint64 {
	w := h.w
	most := w.most()
	n := most
	for i, at := range h.at {
		if r.known[i] <= pane {
			n = min(n, w.words[at+int(bit>>6)]>>(bit&63)&most)
		}
	}
	if n == most {
		return math.MaxUint64
	}
	return n
}

// walk returns the key's count in the window at t, and the oldest pane from
// which on the count is at most limit.
func (h *Held) walk(t int64, limit uint64) (used uint64, keep int64) {
	w, r := h.w, h.span(t)
	keep = r.oldest
	bit := w.bit(r.newest)
	for k := r.newest; k >= r.oldest; k-- {
		n := h.least(&r, k, bit)
		used += min(n, math.MaxUint64-used)
		if used > limit && keep <= k {
			keep = k + 1
		}
		bit = w.before(bit)
	}
	if r.unknown {
		used = math.MaxUint64
	}
	return used, keep
}
