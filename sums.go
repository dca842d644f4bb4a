package lately

import (
	"iter"
	"math"
	"sync/atomic"
	"time"
)

// Sums adds up several signed amounts in one [Window], each under a name given
// once: the money that came in and the money that went out in the last hour,
// and what is left of it.
//
//	const in, out = 0, 1
//	flow, err := lately.NewSums(lately.Last(time.Hour), "in", "out")
//	...
//	flow.Add(in, 1999)
//	net := flow.Net(in, out)
//
// A sum is known by its index, the place of its name in NewSums, so that an add
// looks nothing up. Amounts are int64 in a unit of the caller's choice, cents
// for example. Sums that are read together, by [Sums.Net] and
// [Sums.AppendSums], are of the same window. For amounts that are not whole see
// [FloatSums].
//
// It is exact in the sense that [Counter] is: every add that is not refused
// counts in precisely one slot of its sum for as long as that slot is in the
// window. Since amounts have a sign, [Sums.Bounds] bounds the truth only for a
// sum whose amounts all have the same sign; keep what comes in and what goes out
// apart, as above, and both have bounds. The sum of a slot stays from -(2^62-1)
// to 2^62-1, see [Sums.Saturated]; what is read is added up in 128 bits and, if
// it does not fit, the nearest int64.
//
// Verbs come in two forms, now and at a time given, on the clock that Counter
// describes. An add now costs a clock reading and one atomic step, and takes no
// lock except to move the window on when a slot is over; an add with a time of
// its own takes a mutex. A read takes about a nanosecond a slot, and waits only
// for a window that is just moving on. Nothing allocates after NewSums; memory
// is 8 bytes a sum for each of the slots plus 2, rounded up to a power of two. There
// is no goroutine and no timer.
//
// All methods may be called at any time by any number of goroutines. A read
// beside adds sees at least those that finished before it began, and at most
// those that began before it ended. An index that is not one of a sum panics,
// as that of a slice does. The zero Sums is not usable: it panics; call
// [NewSums]. A Sums must not be copied.
type Sums struct {
	ring sumRing
}

const (
	maxSlotSum = 1<<62 - 1

	// maxBlindSum is the largest amount that is added before the sum of the
	// slot is looked at. To wrap it past maxSlotSum, between an add that did not
	// fit and the clamp that follows, takes 2^30 goroutines at that very place.
	maxBlindSum = 1 << 32
)

// NewSums returns sums over the window w, all 0, one for each name. Names must
// not be empty or equal; there are from 1 to [MaxSums]. The error says what is
// wrong and what is allowed.
func NewSums(w Window, names ...string) (*Sums, error) {
	s := new(Sums)
	if err := s.ring.init(w, 1, names); err != nil {
		return nil, err
	}
	return s, nil
}

// Window returns the window that s adds up in, its slot filled in.
func (s *Sums) Window() Window { return s.ring.window }

// Names returns the names of the sums, in the order of their indexes.
func (s *Sums) Names() []string { return append([]string(nil), s.ring.names...) }

// Index returns the index of the sum of that name, and whether there is one. It
// goes through all names; keep the index.
func (s *Sums) Index(name string) (i int, ok bool) { return s.ring.index(name) }

// Add adds n, now, to sum i. It is never refused. For what happens when the
// goroutine is held up or when events run ahead of the clock see [Counter.Add].
func (s *Sums) Add(i int, n int64) { s.addLive(s.ring.clock.now(), i, n) }

func (s *Sums) addLive(now int64, i int, n int64) {
	if !addInt(&s.ring.liveCell(i, now)[0], n) {
		s.ring.saturated.Add(1)
	}
}

// AddAt adds n to sum i at the time t, in any order of times. It reports whether
// n is added. If not, it was refused: as late, because t is in a slot that the
// window as of the newest event has left altogether, or as future, see
// [Window.Ahead].
//
// AddAt(t, i, 0) adds nothing, but moves the window on to t.
func (s *Sums) AddAt(t time.Time, i int, n int64) bool {
	ns := s.ring.clock.nanos(t)
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	cell, ok := s.ring.eventCell(i, ns)
	if ok && !addInt(&cell[0], n) {
		s.ring.saturated.Add(1)
	}
	return ok
}

// addInt adds n to the sum in the cell and reports whether it fitted.
func addInt(cell *atomic.Uint64, n int64) bool {
	if n < -maxBlindSum || n > maxBlindSum {
		return addLargeInt(cell, n)
	}
	v := int64(cell.Add(uint64(n)))
	if -maxSlotSum <= v && v <= maxSlotSum {
		return true
	}
	for slotSum(v) != v && !cell.CompareAndSwap(uint64(v), uint64(slotSum(v))) {
		v = int64(cell.Load())
	}
	return false
}

func addLargeInt(cell *atomic.Uint64, n int64) bool {
	for {
		old := cell.Load()
		v, fits := slotSum(int64(old)), true
		switch {
		case n > 0 && n > maxSlotSum-v:
			v, fits = maxSlotSum, false
		case n < 0 && n < -maxSlotSum-v:
			v, fits = -maxSlotSum, false
		default:
			v += n
		}
		if cell.CompareAndSwap(old, uint64(v)) {
			return fits
		}
	}
}

// slotSum is v, or the nearest that the sum of a slot can be.
func slotSum(v int64) int64 { return min(max(v, -maxSlotSum), maxSlotSum) }

// Sum returns sum i of the window that ends now, leaving out the oldest slot,
// which has partly expired.
func (s *Sums) Sum(i int) int64 {
	return s.sum(s.ring.clock.now(), int64(s.ring.window.Span), true, i)
}

// SumAt returns sum i of the window that ends at t. For times before the newest
// event it is what is left of that window; see [Counter.SumAt].
func (s *Sums) SumAt(t time.Time, i int) int64 {
	return s.sum(s.ring.clock.nanos(t), int64(s.ring.window.Span), false, i)
}

// SumLast returns sum i of a shorter span that ends now: of the slots that lie
// wholly inside it, the current one included. The error says so if span is not
// positive or longer than the window; the sum is 0 then.
func (s *Sums) SumLast(i int, span time.Duration) (int64, error) {
	if err := s.ring.checkSpan(span); err != nil {
		return 0, err
	}
	return s.sum(s.ring.clock.now(), int64(span), true, i), nil
}

// SumLastAt returns sum i of a shorter span that ends at t; see SumLast and
// SumAt.
func (s *Sums) SumLastAt(t time.Time, i int, span time.Duration) (int64, error) {
	if err := s.ring.checkSpan(span); err != nil {
		return 0, err
	}
	return s.sum(s.ring.clock.nanos(t), int64(span), false, i), nil
}

// Bounds returns what the true sum i of the window that ends now lies between
// if all its amounts have the same sign: the sums of the slots wholly inside
// the window, with and without the oldest one, which is partly inside. lo is
// the smaller of the two. With amounts of both signs in that slot the truth
// may be outside.
func (s *Sums) Bounds(i int) (lo, hi int64) { return s.bounds(s.ring.clock.now(), true, i) }

// BoundsAt returns the bounds of the window that ends at t; see Bounds and, for
// times in the past, SumAt.
func (s *Sums) BoundsAt(t time.Time, i int) (lo, hi int64) {
	return s.bounds(s.ring.clock.nanos(t), false, i)
}

// Net returns sum plus less sum minus, of the window that ends now: what
// Sum(plus) - Sum(minus) would be if both were read at once, and fitted.
func (s *Sums) Net(plus, minus int) int64 { return s.net(s.ring.clock.now(), true, plus, minus) }

// NetAt returns sum plus less sum minus, of the window that ends at t; see
// SumAt.
func (s *Sums) NetAt(t time.Time, plus, minus int) int64 {
	return s.net(s.ring.clock.nanos(t), false, plus, minus)
}

// AppendSums appends all sums of the window that ends now to dst, in the order
// of their indexes, and returns it. With room in dst it does not allocate.
func (s *Sums) AppendSums(dst []int64) []int64 {
	return s.appendSums(s.ring.clock.now(), true, dst)
}

// AppendSumsAt appends all sums of the window that ends at t to dst and returns
// it; see AppendSums and SumAt.
func (s *Sums) AppendSumsAt(t time.Time, dst []int64) []int64 {
	return s.appendSums(s.ring.clock.nanos(t), false, dst)
}

// Slots returns what Sum(i) adds up, slot by slot, oldest first, empty ones
// included: the start of each, in UTC, and its sum. Each slot is read when its
// turn comes, and is empty if it has left the window by then.
func (s *Sums) Slots(i int) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) {
		s.eachSlot(s.ring.notBehind(s.ring.clock.now()), i, yield)
	}
}

// SlotsAt returns what SumAt(t, i) adds up, as Slots does.
func (s *Sums) SlotsAt(t time.Time, i int) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) {
		s.eachSlot(s.ring.clock.nanos(t), i, yield)
	}
}

// Late returns how many calls were refused as late since s was made.
func (s *Sums) Late() uint64 { return s.ring.late.Load() }

// Future returns how many calls were refused as future since s was made.
func (s *Sums) Future() uint64 { return s.ring.future.Load() }

// Saturated returns how many calls since s was made did not fit: they brought
// the sum of a slot to 2^62-1 or -(2^62-1). If it is not 0, a sum over such a
// slot may not be the truth.
func (s *Sums) Saturated() uint64 { return s.ring.saturated.Load() }

func (s *Sums) sum(t, span int64, live bool, i int) (sum int64) {
	s.ring.view(t, span, live, func(v sumView) {
		var w wideInt
		w.addSlots(v, i, 1)
		sum = w.int64()
	})
	return sum
}

func (s *Sums) bounds(t int64, live bool, i int) (lo, hi int64) {
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		var w wideInt
		w.addSlots(v, i, 1)
		lo = w.int64()
		if v.cut {
			w.add(slotSum(int64(v.cells(i)[v.at(v.first-1)].Load())))
		}
		hi = w.int64()
	})
	return min(lo, hi), max(lo, hi)
}

func (s *Sums) net(t int64, live bool, plus, minus int) (net int64) {
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		var w wideInt
		w.addSlots(v, plus, 1)
		w.addSlots(v, minus, -1)
		net = w.int64()
	})
	return net
}

func (s *Sums) appendSums(t int64, live bool, dst []int64) []int64 {
	before := len(dst)
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		dst = dst[:before]
		for i := range v.r.sums {
			var w wideInt
			w.addSlots(v, i, 1)
			dst = append(dst, w.int64())
		}
	})
	return dst
}

func (s *Sums) eachSlot(t int64, i int, yield func(time.Time, int64) bool) {
	s.ring.eachSlot(t, func(start time.Time, slot int64) bool {
		var sum int64
		s.ring.viewSlot(slot, func(v sumView) {
			var w wideInt
			w.addSlots(v, i, 1)
			sum = w.int64()
		})
		return yield(start, sum)
	})
}

// A wideInt adds up int64 values, as the sums of their upper and lower halves,
// which overflow neither for any number of values that fits in memory.
type wideInt struct {
	upper, lower int64
}

func (w *wideInt) add(n int64) {
	w.upper += n >> 32
	w.lower += n & (1<<32 - 1)
}

// addSlots adds sum i of the slots of v, times sign, which is 1 or -1.
func (w *wideInt) addSlots(v sumView, i int, sign int64) {
	cells := v.cells(i)
	mask := uint64(len(cells) - 1)
	var upper, lower int64
	for s := v.first; s <= v.last; s++ {
		n := slotSum(int64(cells[uint64(s)&mask].Load()))
		upper += n >> 32
		lower += n & (1<<32 - 1)
	}
	w.upper += sign * upper
	w.lower += sign * lower
}

// int64 returns the value, or the nearest that fits.
func (w *wideInt) int64() int64 {
	upper, lower := w.upper+w.lower>>32, w.lower&(1<<32-1)
	switch {
	case upper > math.MaxInt32:
		return math.MaxInt64
	case upper < math.MinInt32:
		return math.MinInt64
	}
	return upper<<32 | lower
}
