package limit

import (
	"encoding/binary"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// sliding is the window of Sliding above SlidingExact. It has three modes:
//
//   - list: up to [Inline] times in the record, as a log of [keytable.Blocks] has them.
//   - slots: when more are in the window, the slots of a ring. Its head is in the
//     place of the times, and its counts are in a block.
//   - two slots: without memory for a block, two slots as long as the span, in the
//     record. It may then refuse too much, but only a key that has used up N in two
//     spans.
//
// When everything has left, it is a list again. So a key that is seen a few times
// in a span, as most are, costs one cache line and is counted exactly, and one
// that is seen often costs no more than its slots.
//
// When the list is converted to slots, expired times are dropped. So the sum is
// never larger than if slots had counted from the start, and never smaller than
// the window's true count.
//
// The block has one word more than the counts: since when slots count. A time that
// had left by then must not be taken out of its slot.
//
// Word 0 has, beside what [keytable.Blocks] keeps there, the mode, 2 bits, and the
// ring's bits, see slotRing, or the length of the list. An empty list has anything in
// word 1. With two slots, words 1 and 2 are those of twoBucket, and 3 is since when
// they count.
type sliding struct {
	list log
	ring slotRing
	two  twoBucket // whole
}

const (
	modeSlots    = 1 << 17
	modeTwoSlots = 1 << 18
	listLen      = 1<<16 - 1
	slidingBits  = modeSlots | modeTwoSlots | ringBits

	twoSlotsSince = 3
)

// newSliding returns the window of Sliding for any N.
func newSliding(c *Config) window {
	if c.Exact() {
		return newLog(c)
	}
	s := &sliding{ring: newSlotRing(c), two: twoBucketOf(c), list: log{n: Inline, span: int64(c.Span)}}
	s.two.whole = true
	return s
}

func (s *sliding) words() int { return 1 + Inline }

// blockWords returns how many words a block has.
func (s *sliding) blockWords() int { return s.ring.countWords() + 1 }

// since returns since when slots count, of the block c.
func since(c []uint64) int64 { return int64(c[len(c)-1]) }

func slotted(w []uint64) bool { return w[0]&modeSlots != 0 }

func twoSlotted(w []uint64) bool { return w[0]&modeTwoSlots != 0 }

func listed(w []uint64) bool { return w[0]&(modeSlots|modeTwoSlots) == 0 }

func (s *sliding) advance(w []uint64, b *keytable.Blocks, t int64) uint64 {
	switch {
	case slotted(w):
		if t >= int64(w[ringLeaves]) {
			s.ring.expire(w, b.Block(w), t)
			return s.clearEmpty(w, b, t)
		}
		return w[ringSum]
	case twoSlotted(w):
		s.two.advance(w[1:], nil, t)
		return s.clearEmpty(w, b, t)
	case int64(w[1]) <= t-s.list.span:
		return s.expireList(w, t)
	}
	return w[0] & listLen
}

// clearEmpty returns how much is in slots, and gives them up if nothing is.
func (s *sliding) clearEmpty(w []uint64, b *keytable.Blocks, t int64) uint64 {
	used := s.used(w, nil, t)
	if used == 0 {
		b.Clear(w)
	}
	return used
}

// expireList is the advance of a log that has no block. It spares a key that is seen now and
// then, which comes here with each event, a third of the instructions of a Take.
func (s *sliding) expireList(w []uint64, t int64) uint64 {
	times, k := w[1:1+w[0]&listLen], 0
	for k < len(times) && int64(times[k]) <= t-s.list.span {
		k++
	}
	copy(times, times[k:])
	w[0] -= uint64(k)
	return w[0] & listLen
}

func (s *sliding) used(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	switch {
	case slotted(w):
		return w[ringSum]
	case twoSlotted(w):
		return s.two.used(w[1:], nil, t)
	}
	return w[0] & listLen
}

// fits reports whether w is a list that can take cost more.
func fits(w []uint64, cost uint64) bool { return listed(w) && cost <= Inline-w[0]&listLen }

func (s *sliding) charge(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	if fits(w, cost) {
		for range cost {
			push(w, t)
		}
		return
	}
	if listed(w) {
		s.spill(w, b, t)
	}
	s.add(w, b, t, cost)
}

// push appends t to the list.
func push(w []uint64, t int64) {
	w[0]++
	w[w[0]&listLen] = uint64(t)
}

// add charges cost to slots.
func (s *sliding) add(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	if slotted(w) {
		s.ring.charge(w, b, t, cost)
		return
	}
	s.two.advance(w[1:], nil, t)
	s.two.charge(w[1:], nil, t, cost)
}

// addNewest adds cost to the newest slot if t is in it and nothing beside the record
// changes. Otherwise it reports false and changes nothing.
func (s *sliding) addNewest(w []uint64, t int64, cost uint64) bool {
	before := int64(w[ringEnd]) - t
	return slotted(w) && before > 0 && before <= s.ring.width && s.ring.addPending(w, cost)
}

// spill puts the times of the list into slots at t.
func (s *sliding) spill(w []uint64, b *keytable.Blocks, t int64) {
	var times [Inline]uint64
	n := copy(times[:], w[1:1+w[0]&listLen])
	w[0] &^= slidingBits
	if b.Spill(w) {
		w[0] |= modeSlots
		c := b.Block(w)
		c[len(c)-1], w[ringSum] = uint64(t), 0
	} else {
		w[0] |= modeTwoSlots
		w[1], w[2], w[twoSlotsSince] = 0, 0, uint64(t)
	}
	for _, at := range times[:n] {
		s.add(w, b, int64(at), 1)
	}
}

func (s *sliding) refund(w []uint64, b *keytable.Blocks, t, at int64, cost uint64) (taken uint64) {
	switch {
	case slotted(w):
		if c := b.Block(w); at > since(c)-s.ring.span { // else it was left out
			taken = s.ring.refund(w, b, at, cost)
		}
	case twoSlotted(w):
		if at > int64(w[twoSlotsSince])-s.ring.span {
			taken = s.two.refund(w[1:], nil, t, at, cost)
		}
	default:
		return s.list.refund(w, b, t, at, cost)
	}
	s.clearEmpty(w, b, t)
	return taken
}

func (s *sliding) refundOldest(w []uint64, b *keytable.Blocks, t int64, cost uint64) (taken uint64) {
	switch {
	case slotted(w):
		taken = s.ring.refundOldest(w, b, cost)
	case twoSlotted(w):
		taken = s.two.refundOldest(w[1:], nil, t, cost)
	default:
		return s.list.refundOldest(w, b, t, cost)
	}
	s.clearEmpty(w, b, t)
	return taken
}

func (s *sliding) until(w []uint64, b *keytable.Blocks, t int64, used, most uint64) int64 {
	switch {
	case slotted(w):
		return s.ring.until(w, b, most)
	case twoSlotted(w):
		return s.two.until(w[1:], nil, t, used, most)
	}
	return s.list.until(w, b, t, used, most)
}

// keeps is Counter.Keeps, if there is memory for slots.
func (s *sliding) keeps(w []uint64, t int64, cost uint64) time.Duration {
	sl := &s.ring.slots
	switch {
	case fits(w, cost):
		return time.Duration(s.list.span)
	case twoSlotted(w):
		sl = &s.two.slots
	}
	return time.Duration(sl.last(sl.number(t)) + sl.span - t)
}

func (s *sliding) each(w []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	switch {
	case slotted(w):
		s.ring.each(w, b, t, yield)
	case twoSlotted(w):
		s.two.each(w[1:], nil, t, yield)
	default:
		s.list.each(w, b, t, yield)
	}
}

// appendState appends what the ring does and since when slots count; or one more
// than its first number can be and what two slots do; or two more and what a log does.
func (s *sliding) appendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	size := uint64(s.ring.size)
	switch {
	case slotted(w):
		dst = s.ring.appendState(dst, w, b, t)
		return binary.AppendUvarint(dst, min(uint64(t-since(b.Block(w))), snapshot.MaxPast))
	case twoSlotted(w):
		dst = s.two.appendState(binary.AppendUvarint(dst, size+1), w[1:], nil, t)
		return binary.AppendUvarint(dst, min(uint64(t)-w[twoSlotsSince], snapshot.MaxPast))
	}
	return b.AppendLog(binary.AppendUvarint(dst, size+2), w, t)
}

func (s *sliding) readState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	size := uint64(s.ring.size)
	switch k := r.UpTo(size + 2); {
	case k == 0:
	case k == size+2:
		if b.ReadLog(r, w, t, now); w[0] == 0 || b.Lost(w) {
			r.Fail()
		}
	case k == size+1:
		w[0] |= modeTwoSlots
		w[1], w[2] = 0, 0
		if s.two.readState(r, w[1:], nil, t, now); w[2] == 0 {
			r.Fail()
		}
		w[twoSlotsSince] = uint64(min(t-int64(r.UpTo(snapshot.MaxPast)), now))
	case !b.Spill(w):
		r.Fail()
	default:
		w[0] |= modeSlots
		c := b.Block(w)
		s.ring.readSlots(r, w, c, int64(k)-1, t, now)
		c[len(c)-1] = uint64(min(t-int64(r.UpTo(snapshot.MaxPast)), now))
	}
}

// copyState makes w hold what fw holds. It reports false if there is no memory.
func (s *sliding) copyState(w []uint64, b *keytable.Blocks, fw []uint64, fb *keytable.Blocks) bool {
	if slotted(fw) {
		if !b.Spill(w) {
			return false
		}
		copy(b.Block(w), fb.Block(fw))
	}
	w[0] |= fw[0] & slidingBits
	copy(w[1:1+Inline], fw[1:1+Inline])
	return true
}
