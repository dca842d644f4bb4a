package limit

import (
	"math"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// Bounds returns the bounds of what Exact or Sliding was charged in (t-span, t], t being
// the time of the last Advance: lo leaves out a slot that lies in the window in part,
// and hi includes it. They are equal while times are kept. A count that does not know
// all that was charged has no upper bound: hi is math.MaxUint64.
func (m *Counter) Bounds(w []uint64, b *keytable.Blocks, t int64) (lo, hi uint64) {
	if m.sliding != nil {
		return m.sliding.bounds(w, b, t)
	}
	lo = uint64(b.Len(w))
	if b.Lost(w) {
		return lo, math.MaxUint64
	}
	return lo, lo
}

// Newest returns the newest time that Exact or Sliding has counted: that of the last
// Charge, or when its slot began. It is math.MinInt64 if nothing is counted.
func (m *Counter) Newest(w []uint64, b *keytable.Blocks) int64 {
	switch {
	case m.sliding != nil && slotted(w):
		return int64(w[ringEnd]) - m.sliding.ring.width
	case m.sliding != nil && twoSlotted(w):
		return int64(w[1]) * m.sliding.two.width
	case b.Len(w) == 0:
		return math.MinInt64
	}
	return b.Newest(w)
}

// Slot returns how wide the slots are in which Exact or Sliding has counted w, or 0 if it
// keeps times.
func (m *Counter) Slot(w []uint64) int64 {
	switch {
	case m.sliding != nil && slotted(w):
		return m.sliding.ring.width
	case m.sliding != nil && twoSlotted(w):
		return m.sliding.two.width
	}
	return 0
}

func (s *sliding) bounds(w []uint64, b *keytable.Blocks, t int64) (lo, hi uint64) {
	switch {
	case slotted(w):
		return s.ring.bounds(w, b.Block(w), t)
	case twoSlotted(w):
		older, newer := w[2]>>32, w[2]&bucketFull
		if older == bucketFull || newer == bucketFull {
			return newer, math.MaxUint64
		}
		return newer, older + newer
	}
	n := w[0] & listLen
	return n, n
}

func (r *slotRing) bounds(h, c []uint64, t int64) (lo, hi uint64) {
	lo, hi = h[ringSum], h[ringSum]
	if hi == 0 {
		return 0, 0
	}
	if back := r.back(h); r.first(t) > r.end(h, back)-r.width {
		lo -= r.count(h, c, back)
	}
	if hi >= r.full {
		hi = math.MaxUint64 // a count may be full
	}
	return lo, hi
}
