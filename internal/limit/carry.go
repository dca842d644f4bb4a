package limit

import "github.com/lately-go/lately/internal/keytable"

// Carry makes w, the words of m, hold what the counter from holds in fw, so that a
// limit can change while it is in use. from has the same algorithm, and may have
// another N, Span or Burst; t is the time of the last Advance of fw. If nothing
// differs, w then says the same as fw at all times. Carry reports false, and w has
// nothing counted, if the budget of b has no memory for it.
//
// At least as much is used in m as if it had been charged with what from holds at
// the true times: a slot is charged at its last moment. What a bucket has drained
// is not charged.
func (m *Counter) Carry(w []uint64, b *keytable.Blocks, from *Counter, fw []uint64, fb *keytable.Blocks, t int64) bool {
	m.Clear(w, b)
	if m.config == from.config {
		return m.copyState(w, b, fw, fb)
	}
	for at, count := range from.Each(fw, fb, t) {
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
