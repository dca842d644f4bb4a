package meter

import (
	"encoding/binary"

	"github.com/lately-go/lately/internal/shard"
)

// What a meter holds can be written down, and read again into another record of
// a meter with the same Config, which then says the same at all later times. The
// form does not depend on where in a record or in blocks things lie. Nothing
// used is one zero byte in all kinds.

// longestPeriod bounds the length of a calendar's period, in nanoseconds.
const longestPeriod = 35 * 24 * 3600e9

// AppendState appends what m holds in w at t, the newest time that the record was
// judged at.
func (m *Meter) AppendState(dst []byte, w []uint64, b *shard.Blocks, t int64) []byte {
	if m.form == formLog {
		return b.AppendLog(dst, w, t)
	}
	if m.Used(w, b, t) == 0 {
		return append(dst, 0)
	}
	switch m.form {
	case formRing:
		return m.ring.appendState(dst, w, t)
	case formBuckets:
		dst = binary.AppendUvarint(dst, uint64(m.buckets.number(t)-int64(w[0]))+1)
		dst = binary.AppendUvarint(dst, w[1]>>32)
		return binary.AppendUvarint(dst, w[1]&bucketFull)
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
func (m *Meter) ReadState(r *shard.DumpReader, w []uint64, b *shard.Blocks, t, now int64) {
	switch m.form {
	case formNone:
		r.UpTo(0)
		return
	case formLog:
		b.ReadLog(r, w, t, now)
		return
	case formRing:
		m.ring.readState(r, w, t, now)
	case formBuckets:
		m.buckets.readState(r, w, t, now)
	case formLevel:
		m.level.readState(r, w, min(t, now))
	case formFixed:
		if count := r.Uvarint(); count > 0 {
			w[0], w[1] = uint64(min(t-int64(r.UpTo(shard.DumpPast)), now)), count
		}
	case formCalendar:
		m.calendar.readState(r, w, t, now)
	}
	if r.Failed() {
		m.Clear(w, b)
	}
}

// CopyState makes w, which has nothing counted, hold what fw holds, in which a
// meter with the same Config counts. It reports false, and w has nothing counted,
// if the budget has no memory for it.
func (m *Meter) CopyState(w []uint64, b *shard.Blocks, fw []uint64, fb *shard.Blocks) bool {
	if m.form == formLog {
		return b.CopyLog(w, fb, fw)
	}
	copy(w[:m.Words()], fw)
	return true
}

// appendState appends how many slots the oldest is before the newest, how many
// the newest is before that of t, and the counts from the newest on.
func (r *slotRing) appendState(dst []byte, w []uint64, t int64) []byte {
	newest, oldest := int64(w[ringNewest]), r.oldest(w)
	dst = binary.AppendUvarint(dst, uint64(newest-oldest)+1)
	dst = binary.AppendUvarint(dst, uint64(r.number(t)-newest))
	for k := newest; k >= oldest; k-- {
		dst = binary.AppendUvarint(dst, r.count(w, k))
	}
	return dst
}

func (r *slotRing) readState(d *shard.DumpReader, w []uint64, t, now int64) {
	back := int64(d.UpTo(uint64(r.size))) - 1
	if back < 0 {
		return
	}
	newest := r.number(t) - int64(d.UpTo(shard.DumpPast/uint64(r.width)))
	last := min(newest, r.number(now)) // what is later counts there
	oldest := min(newest-back, last)
	w[ringNewest] = uint64(last)
	w[ringState] = uint64(last-oldest)<<ringBackShift | uint64(last-oldest) // the oldest is at 0
	sum := uint64(0)
	for k := newest; k >= newest-back; k-- {
		count := d.UpTo(r.full)
		word, shift := r.place(w, min(k, last))
		count = min(count, r.full-w[word]>>shift&r.full)
		w[word] += count << shift
		sum += count
	}
	w[ringState] |= sum << ringSumShift
	if sum == 0 {
		d.Fail()
	}
}

func (b *buckets) readState(r *shard.DumpReader, w []uint64, t, now int64) {
	back := r.UpTo(shard.DumpPast / uint64(b.width))
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

func (l *level) readState(r *shard.DumpReader, w []uint64, t int64) {
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

func (c *calendar) readState(r *shard.DumpReader, w []uint64, t, now int64) {
	count := r.Uvarint()
	if count == 0 {
		return
	}
	left := r.Varint()
	if left > longestPeriod || left < -shard.DumpPast {
		r.Fail()
		return
	}
	end := t + left
	if now < t { // the clock was set back, perhaps over the beginning of the period
		end = min(end, c.of(now).end)
	}
	w[0], w[1] = uint64(end), count
}
