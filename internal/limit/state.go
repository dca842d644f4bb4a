package limit

import "github.com/lately-go/lately/internal/keytable"

// A State is what a [Counter] holds, for a store that keeps it in another form. The
// algorithm and what is counted say which fields are set. Times are in nanoseconds since 1970.
type State struct {
	// Times are those of Exact, InFlight and Sliding, oldest first, unless Sliding has slots.
	// Lost says that one which may still count was dropped.
	Times []int64
	Lost  bool

	// Counts are those of the slots of Sliding and TwoBucket, oldest first, and
	// Newest is the number of the last. Since is when those of Sliding began to count.
	Counts        []uint64
	Newest, Since int64

	// Ends is when the bucket of GCRA and LeakyBucket is empty, and Rest what is added to
	// that, in 1/N ns; or when the window of Fixed and Calendar ends, and Count what is in it.
	Ends        int64
	Rest, Count uint64
}

// State returns what m holds in w at t, the newest time that the record was judged at. ok
// is false if nothing is used. It is not for distinct values.
func (m *Counter) State(w []uint64, b *keytable.Blocks, t int64) (s State, ok bool) {
	if m.Used(w, b, t) == 0 {
		return s, false
	}
	switch win := m.window.(type) {
	case *log:
		s.Lost = b.Lost(w)
		for i := range b.Len(w) {
			s.Times = append(s.Times, b.At(w, i))
		}
	case *sliding:
		s = win.state(w, b, t)
	case *twoBucket:
		s.Newest, s.Counts = int64(w[0]), []uint64{w[1] >> 32, w[1] & bucketFull}
	case *level:
		s.Ends, s.Rest = win.empty(w, t)
	case *fixed, *calendar:
		s.Ends, s.Count = int64(w[0]), w[1]
	default:
		return s, false
	}
	return s, true
}

func (s *sliding) state(w []uint64, b *keytable.Blocks, t int64) (out State) {
	switch {
	case slotted(w):
		out = s.ring.state(w, b)
		out.Since = since(b.Block(w))
	case twoSlotted(w): // as the last slots of the ring that they may be in
		s.two.each(w[1:], nil, t, func(at int64, count uint64) bool {
			k := s.ring.number(at)
			if out.Counts != nil {
				out.Counts = append(out.Counts, make([]uint64, k-out.Newest-1)...)
			}
			out.Newest, out.Counts = k, append(out.Counts, count)
			return true
		})
		out.Since = int64(w[twoSlotsSince])
	default:
		for _, at := range list(w) {
			out.Times = append(out.Times, int64(at))
		}
	}
	return out
}

func (r *slotRing) state(h []uint64, b *keytable.Blocks) (s State) {
	c := b.Block(h)
	s.Newest = r.slot(h, 0)
	for back := r.back(h); back >= 0; back-- {
		s.Counts = append(s.Counts, r.count(h, c, back))
	}
	return s
}
