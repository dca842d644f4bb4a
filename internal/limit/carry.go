package limit

import "github.com/lately-go/lately/internal/keytable"

// Carry charges m, of which w are the words and b the Blocks, with what the counter
// from holds at t in words fw and Blocks fb: so a limit is changed while it is in
// use. w is cleared first, and advanced to t. It reports false, w being clear, if
// the budget has no memory for it.
//
// Nothing is gained by it: from then on at least as much is used in m as if it
// had been charged from the start with what from holds, at the true times. The
// exception is what a bucket has drained, which is forgotten. A Fixed or Calendar
// window that goes on as one keeps its end; another kind is carried into a Fixed
// window that begins at t.
func (m *Counter) Carry(w []uint64, b *keytable.Blocks, from *Counter, fw []uint64, fb *keytable.Blocks, t int64) bool {
	m.Clear(w, b)
	if m.form == formFixed && from.form == formFixed && m.span == from.span {
		copy(w, fw[:2])
		return true
	}
	for at, count := range from.Each(fw, fb, t) {
		if m.form == formFixed {
			at = t
		}
		m.Advance(w, b, at)
		if !m.Room(w, b, count) {
			m.Clear(w, b)
			return false
		}
		m.Charge(w, b, at, count)
	}
	if m.Advance(w, b, t); m.form == formLog && from.form == formLog && fb.Lost(fw) {
		b.Lose(w)
	}
	return true
}

// each yields the counts of the slots, at the last time that each may have in
// it.
func (r *slotRing) each(h, c []uint64, t int64, yield func(int64, uint64) bool) {
	if h[ringSum] == 0 {
		return
	}
	for back := r.back(h); back >= 0; back-- {
		if count := r.count(h, c, back); count > 0 && !yield(min(r.lastBefore(r.end(h, back)), t), count) {
			return
		}
	}
}

func (b *buckets) each(w []uint64, t int64, yield func(int64, uint64) bool) {
	newer := int64(w[0])
	if older := w[1] >> 32; older > 0 && !yield(b.last(newer-1), older) {
		return
	}
	if count := w[1] & bucketFull; count > 0 {
		yield(min(b.last(newer), t), count)
	}
}
