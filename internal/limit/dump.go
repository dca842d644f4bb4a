package limit

import (
	"encoding/binary"
	"slices"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// What a counter holds can be written down, and read again into another record of
// a counter with the same Config, which then says the same at all later times. The
// form does not depend on where in a record or in blocks things lie. Nothing
// used is one zero byte in all kinds.

// longestPeriod bounds the length of a calendar's period, in nanoseconds.
const longestPeriod = 35 * 24 * 3600e9

// AppendState appends what m holds in w at t, the newest time that the record was
// judged at.
func (m *Counter) AppendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	if m.form == formLog {
		return b.AppendLog(dst, w, t)
	}
	if m.Used(w, b, t) == 0 {
		return append(dst, 0)
	}
	switch m.form {
	case formSpill:
		return m.spill.appendState(dst, w, b, t)
	case formRing:
		return m.ring.appendState(dst, w, w[ringHead:], t)
	case formBuckets:
		return m.buckets.appendState(dst, w, t)
	case formLevel:
		return m.level.appendState(dst, w, t)
	case formFixed:
		dst = binary.AppendUvarint(dst, w[1])
		return binary.AppendUvarint(dst, uint64(t-int64(w[0])))
	}
	dst = binary.AppendUvarint(dst, w[1])
	return binary.AppendVarint(dst, int64(w[0])-t)
}

// ReadState makes w, which has nothing counted, hold what AppendState has appended
// at t. What m held after now, which is possible when the clock was set back since,
// it then holds at now. If it is nothing that m can hold, r has failed, and w has
// nothing counted.
func (m *Counter) ReadState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	switch m.form {
	case formNone:
		r.UpTo(0)
		return
	case formLog:
		b.ReadLog(r, w, t, now)
		return
	case formSpill:
		m.spill.readState(r, w, b, t, now)
	case formRing:
		if k := r.UpTo(uint64(m.ring.size)); k > 0 {
			m.ring.readState(r, w, w[ringHead:], int64(k)-1, t, now)
		}
	case formBuckets:
		m.buckets.readState(r, w, t, now)
	case formLevel:
		m.level.readState(r, w, min(t, now))
	case formFixed:
		if count := r.Uvarint(); count > 0 {
			w[0], w[1] = uint64(min(t-int64(r.UpTo(snapshot.MaxPast)), now)), count
		}
	case formCalendar:
		m.calendar.readState(r, w, t, now)
	}
	if r.Failed() {
		m.Clear(w, b)
	}
}

// copyState makes w, which has nothing counted, hold what fw holds, in which a
// counter with the same Config counts. It reports false, and w has nothing counted,
// if the budget has no memory for it.
func (m *Counter) copyState(w []uint64, b *keytable.Blocks, fw []uint64, fb *keytable.Blocks) bool {
	switch m.form {
	case formLog:
		return b.CopyLog(w, fb, fw)
	case formSpill:
		return m.spill.copyState(w, b, fw, fb)
	}
	copy(w[:m.Words()], fw)
	return true
}

// appendState appends how many slots the oldest is before the newest, and 1, how
// many the newest is before that of t, and the counts from the newest on.
func (r *slotRing) appendState(dst []byte, h, c []uint64, t int64) []byte {
	oldest := r.back(h)
	dst = binary.AppendUvarint(dst, uint64(oldest)+1)
	dst = binary.AppendUvarint(dst, uint64(r.number(t)-r.slot(h, 0)))
	for back := range oldest + 1 {
		dst = binary.AppendUvarint(dst, r.count(h, c, back))
	}
	return dst
}

// readState reads what appendState has appended after its first number. oldest is
// how many slots the oldest is before the newest.
func (r *slotRing) readState(d *snapshot.Reader, h, c []uint64, oldest, t, now int64) {
	newest := r.number(t) - int64(d.UpTo(snapshot.MaxPast/uint64(r.width)))
	last := min(newest, r.number(now)) // what is later counts there
	back := last - min(newest-oldest, last)
	clear(c)
	h[ringPlace] |= ringHollow
	r.setPlace(h, back, back) // the oldest is at 0
	h[ringEnd] = uint64((last + 1) * r.width)
	h[ringSum] = 0
	for k := newest; k >= newest-oldest; k-- {
		count := d.UpTo(r.full)
		word, shift := r.place(h, last-min(k, last))
		count = min(count, r.full-c[word]>>shift&r.full)
		c[word] += count << shift
		h[ringSum] += count
	}
	if h[ringSum] == 0 {
		d.Fail()
		return
	}
	r.trim(h, c, back)
	if r.count(h, c, 0) > 0 {
		h[ringPlace] &^= ringHollow
	}
}

// appendState appends what the ring does and since when slots count; or one more
// than its first number can be and what a coarse does; or two more, the number of
// times, and from the newest on how much earlier each is than the one after it.
func (r *spillRing) appendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	size := uint64(r.ring.size)
	switch {
	case slotted(w):
		dst = r.ring.appendState(dst, w, b.Block(w), t)
		return binary.AppendUvarint(dst, min(uint64(t-since(b.Block(w))), snapshot.MaxPast))
	case coarsely(w):
		dst = r.coarse.appendState(binary.AppendUvarint(dst, size+1), w[1:], t)
		return binary.AppendUvarint(dst, min(uint64(t)-w[coarseSince], snapshot.MaxPast))
	}
	dst = binary.AppendUvarint(dst, size+2)
	dst = binary.AppendUvarint(dst, w[0]&spillTimes)
	for _, at := range slices.Backward(timesOf(w)) {
		dst = binary.AppendUvarint(dst, uint64(t)-at)
		t = int64(at)
	}
	return dst
}

func (r *spillRing) readState(d *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	size := uint64(r.ring.size)
	switch k := d.UpTo(size + 2); {
	case k == 0:
	case k == size+2:
		r.readTimes(d, w, t, now)
	case k == size+1:
		w[0] |= spillCoarse
		w[1], w[2] = 0, 0
		if r.coarse.readState(d, w[1:], t, now); w[2] == 0 {
			d.Fail()
		}
		w[coarseSince] = uint64(min(t-int64(d.UpTo(snapshot.MaxPast)), now))
	case !b.Spill(w):
		d.Fail()
	default:
		w[0] |= spillSlots
		c := b.Block(w)
		r.ring.readState(d, w, c, int64(k)-1, t, now)
		c[len(c)-1] = uint64(min(t-int64(d.UpTo(snapshot.MaxPast)), now))
	}
}

func (r *spillRing) readTimes(d *snapshot.Reader, w []uint64, t, now int64) {
	n := d.UpTo(Inline)
	if n == 0 {
		d.Fail()
	}
	past := uint64(snapshot.MaxPast)
	for i := n; i > 0; i-- {
		earlier := d.UpTo(past)
		past -= earlier
		t -= int64(earlier)
		w[i] = uint64(min(t, now))
	}
	w[0] = n
}

func (r *spillRing) copyState(w []uint64, b *keytable.Blocks, fw []uint64, fb *keytable.Blocks) bool {
	if slotted(fw) {
		if !b.Spill(w) {
			return false
		}
		copy(b.Block(w), fb.Block(fw))
	}
	w[0] |= fw[0] & spillBits
	copy(w[1:1+Inline], fw[1:1+Inline])
	return true
}

// appendState appends how many buckets the newer is before that of t, and 1, and
// the counts.
func (b *buckets) appendState(dst []byte, w []uint64, t int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.number(t)-int64(w[0]))+1)
	dst = binary.AppendUvarint(dst, w[1]>>32)
	return binary.AppendUvarint(dst, w[1]&bucketFull)
}

func (b *buckets) readState(r *snapshot.Reader, w []uint64, t, now int64) {
	back := r.UpTo(snapshot.MaxPast / uint64(b.width))
	if back == 0 {
		return
	}
	newer := b.number(t) - int64(back-1)
	olderCount, count := r.UpTo(bucketFull), r.UpTo(bucketFull)
	if last := b.number(now); newer > last {
		newer, olderCount, count = last, 0, min(olderCount+count, bucketFull)
	}
	w[0], w[1] = uint64(newer), olderCount<<32|count
	if w[1] == 0 {
		r.Fail()
	}
}

// appendState appends how long after t the bucket will be empty.
func (l *level) appendState(dst []byte, w []uint64, t int64) []byte {
	at, rest := l.empty(w, t)
	dst = binary.AppendUvarint(dst, uint64(at-t)+1)
	if l.wide {
		dst = binary.AppendUvarint(dst, rest)
	}
	return dst
}

func (l *level) readState(r *snapshot.Reader, w []uint64, t int64) {
	ns := r.UpTo(uint64(l.most) + 1)
	if ns == 0 {
		return
	}
	rest := uint64(0)
	if l.wide {
		rest = r.UpTo(l.n - 1)
	}
	l.set(w, t+int64(ns-1), rest)
}

func (c *calendar) readState(r *snapshot.Reader, w []uint64, t, now int64) {
	count := r.Uvarint()
	if count == 0 {
		return
	}
	left := r.Varint()
	if left > longestPeriod || left < -snapshot.MaxPast {
		r.Fail()
		return
	}
	end := t + left
	if now < t { // the clock was set back, perhaps over the beginning of the period
		end = min(end, c.of(now).end)
	}
	w[0], w[1] = uint64(end), count
}
