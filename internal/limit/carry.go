package limit

import (
	"iter"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// Each yields what m holds, as times no later than t and counts, oldest first. To
// charge another Counter with it, at these times, is to carry the counts over: see
// [Counter.Carry].
//
// A time is that of the event, or the latest it may have been: the last moment
// of a slot, or t. What is in a bucket, a Fixed window or a period is yielded at t, what
// has drained not at all.
func (m *Counter) Each(w []uint64, b *keytable.Blocks, t int64) iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) { m.window.each(w, b, t, yield) }
}

// Carry makes w, the words of m, hold what the counter from holds in fw, so that a
// limit can change while it is in use. t is the time of the last Advance of fw. If nothing
// differs, w then says the same as fw at all times. Carry reports false, and w has
// nothing counted, if the budget of b has no memory for it.
//
// At least as much is used in m as if it had been charged with what from holds at
// the true times: see [Counter.Each]. A Fixed window keeps its beginning. What a bucket
// has drained is not charged. Of distinct values, those without memory are left out.
func (m *Counter) Carry(w []uint64, b *keytable.Blocks, from *Counter, fw []uint64, fb *keytable.Blocks, t int64) bool {
	m.Clear(w, b)
	if d, ok := m.window.(*distinct); ok {
		if was, ok := from.window.(*distinct); ok {
			d.carry(w, b, was, fw, fb, t)
		}
		return true
	}
	if m.config == from.config {
		return m.copyState(w, b, fw, fb)
	}
	if f, ok := m.window.(*fixed); ok {
		if was, ok := from.window.(*fixed); ok {
			f.carry(w, was, fw, t)
			return true
		}
	}
	for at, count := range from.Each(fw, fb, t) {
		m.Advance(w, b, at)
		if !m.Reserve(w, b, count) {
			m.Clear(w, b)
			return false
		}
		m.Charge(w, b, at, count)
	}
	if m.Advance(w, b, t); m.log != nil && from.log != nil && fb.Lost(fw) {
		b.Lose(w)
	}
	return true
}

// copyState is Carry where nothing differs.
func (m *Counter) copyState(w []uint64, b *keytable.Blocks, fw []uint64, fb *keytable.Blocks) bool {
	switch {
	case m.log != nil:
		return b.CopyLog(w, fb, fw)
	case m.sliding != nil:
		return m.sliding.copyState(w, b, fw, fb)
	}
	copy(w[:m.Words()], fw)
	return true
}

// AppendState appends what m holds in w at t, the newest time that the record was
// judged at. [Counter.ReadState] reads it into another record of a counter with the
// same Config, which then says the same at all later times. The form does not depend
// on where in a record or in blocks things lie. Nothing used is one zero byte.
func (m *Counter) AppendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	if m.log == nil && m.Used(w, b, t) == 0 {
		return append(dst, 0)
	}
	return m.window.appendState(dst, w, b, t)
}

// ReadState makes w, which has nothing counted, hold what AppendState has appended
// at t. What m held after now, which is possible when the clock was set back since,
// it then holds at now. If m cannot hold it, r has failed, and w has nothing counted.
func (m *Counter) ReadState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	if m.window.readState(r, w, b, t, now); r.Failed() {
		m.Clear(w, b)
	}
}
