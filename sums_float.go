package lately

import (
	"iter"
	"math"
	"sync/atomic"
	"time"
)

// FloatSums is [Sums] for amounts that are float64: several named sums in one
// [Window], with the same verbs, guarantees and concurrency.
//
// What differs is rounding. With each addition the error that it makes is
// computed and added up beside the sum, and put in again by the read. So a sum
// comes out as if it were added up with twice the precision and rounded once:
// with n amounts x in the window, and u = 2^-53, it is off by at most
//
//	u |sum| + 2 n² u² Σ|x|
//
// In practice that is the float64 nearest to the true sum, in whatever order,
// and from however many goroutines, the amounts came. The order can show in the
// last digits only when the amounts cancel out to n u of their size or less, and
// when the truth is as good as midway between two float64 values. Whole amounts
// that stay below 2^53 are exact. Errors do not build up: each slot begins at 0,
// and nothing is ever subtracted to make the window move on.
//
// NaN and infinities are refused, since one would spoil the window; see
// [FloatSums.Invalid]. A sum that exceeds the largest float64 stays there, with
// its sign; see [FloatSums.Saturated].
//
// An add costs a clock reading and two atomic steps, one if it is exact; a read
// 2 to 3 ns a slot. A read beside adds may miss the error of an add that is
// going on, which is a last digit. Memory is 16 bytes a sum for each of the slots
// plus 2, rounded up to a power of two. The zero FloatSums is not usable: it
// panics; call [NewFloatSums]. A FloatSums must not be copied.
//
// The error of an addition is found by Knuth's TwoSum. That the sum and its
// errors, added up apart, are as good as twice the precision is from Ogita,
// Rump and Oishi, Accurate Sum and Dot Product (2005), there for one
// goroutine. It holds for many because each atomic step from one value of the
// sum to the next has an error of its own, whoever makes it.
type FloatSums struct {
	ring    sumRing // a cell is the sum, and the sum of the errors made in it
	invalid atomic.Uint64
}

// NewFloatSums returns sums over the window w, all 0, one for each name; see
// [NewSums].
func NewFloatSums(w Window, names ...string) (*FloatSums, error) {
	s := new(FloatSums)
	if err := s.ring.init(w, 2, names); err != nil {
		return nil, err
	}
	return s, nil
}

// Window returns the window that s adds up in, its slot filled in.
func (s *FloatSums) Window() Window { return s.ring.window }

// Names returns the names of the sums, in the order of their indexes.
func (s *FloatSums) Names() []string { return append([]string(nil), s.ring.names...) }

// Index returns the index of the sum of that name, and whether there is one; see
// [Sums.Index].
func (s *FloatSums) Index(name string) (i int, ok bool) { return s.ring.index(name) }

// Add adds x, now, to sum i, and reports whether it did: false if x is NaN or
// infinite.
func (s *FloatSums) Add(i int, x float64) bool {
	return s.addLive(s.ring.clock.now(), i, x)
}

func (s *FloatSums) addLive(now int64, i int, x float64) bool {
	if x-x != 0 {
		s.invalid.Add(1)
		return false
	}
	if !addFloat(s.ring.liveCell(i, now), x) {
		s.ring.saturated.Add(1)
	}
	return true
}

// AddAt adds x to sum i at the time t. It reports whether x is added: false if
// it is late or future, see [Sums.AddAt], or NaN or infinite.
func (s *FloatSums) AddAt(t time.Time, i int, x float64) bool {
	if x-x != 0 {
		s.invalid.Add(1)
		return false
	}
	ns := s.ring.clock.nanos(t)
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	cell, ok := s.ring.eventCell(i, ns)
	if ok && !addFloat(cell, x) {
		s.ring.saturated.Add(1)
	}
	return ok
}

// addFloat adds x to the sum in cell[0], and the error of that to cell[1], and
// reports whether the sum fitted.
func addFloat(cell []atomic.Uint64, x float64) bool {
	fits := true
	var rounding float64
	for {
		old := cell[0].Load()
		var sum float64
		sum, rounding = twoSum(math.Float64frombits(old), x)
		fits = !math.IsInf(sum, 0)
		if cell[0].CompareAndSwap(old, math.Float64bits(finite(sum))) {
			break
		}
	}
	if rounding == 0 || !fits {
		return fits
	}
	for {
		old := cell[1].Load()
		sum := math.Float64frombits(old) + rounding
		if cell[1].CompareAndSwap(old, math.Float64bits(sum)) {
			return true
		}
	}
}

// twoSum returns a + b rounded, and what the rounding has left out, exactly; 0
// if that is beyond the range of float64.
func twoSum(a, b float64) (sum, rounding float64) {
	sum = a + b
	part := sum - a
	rounding = (a - (sum - part)) + (b - part)
	if rounding-rounding != 0 {
		rounding = 0
	}
	return sum, rounding
}

// finite is x, or the largest float64 of its sign if x is infinite.
func finite(x float64) float64 {
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

// Sum returns sum i of the window that ends now, leaving out the oldest slot,
// which has partly expired.
func (s *FloatSums) Sum(i int) float64 {
	return s.sum(s.ring.clock.now(), int64(s.ring.window.Span), true, i)
}

// SumAt returns sum i of the window that ends at t; see [Sums.SumAt].
func (s *FloatSums) SumAt(t time.Time, i int) float64 {
	return s.sum(s.ring.clock.nanos(t), int64(s.ring.window.Span), false, i)
}

// SumLast returns sum i of a shorter span that ends now; see [Sums.SumLast].
func (s *FloatSums) SumLast(i int, span time.Duration) (float64, error) {
	if err := s.ring.checkSpan(span); err != nil {
		return 0, err
	}
	return s.sum(s.ring.clock.now(), int64(span), true, i), nil
}

// SumLastAt returns sum i of a shorter span that ends at t; see [Sums.SumLast]
// and [Sums.SumAt].
func (s *FloatSums) SumLastAt(t time.Time, i int, span time.Duration) (float64, error) {
	if err := s.ring.checkSpan(span); err != nil {
		return 0, err
	}
	return s.sum(s.ring.clock.nanos(t), int64(span), false, i), nil
}

// Bounds returns what the true sum i of the window that ends now lies between
// if all its amounts have the same sign; see [Sums.Bounds].
func (s *FloatSums) Bounds(i int) (lo, hi float64) { return s.bounds(s.ring.clock.now(), true, i) }

// BoundsAt returns the bounds of the window that ends at t; see [Sums.Bounds].
func (s *FloatSums) BoundsAt(t time.Time, i int) (lo, hi float64) {
	return s.bounds(s.ring.clock.nanos(t), false, i)
}

// Net returns sum plus less sum minus, of the window that ends now, rounded
// once.
func (s *FloatSums) Net(plus, minus int) float64 {
	return s.net(s.ring.clock.now(), true, plus, minus)
}

// NetAt returns sum plus less sum minus, of the window that ends at t; see
// [Sums.SumAt].
func (s *FloatSums) NetAt(t time.Time, plus, minus int) float64 {
	return s.net(s.ring.clock.nanos(t), false, plus, minus)
}

// AppendSums appends all sums of the window that ends now to dst, in the order
// of their indexes, and returns it; see [Sums.AppendSums].
func (s *FloatSums) AppendSums(dst []float64) []float64 {
	return s.appendSums(s.ring.clock.now(), true, dst)
}

// AppendSumsAt appends all sums of the window that ends at t to dst and returns
// it; see [Sums.AppendSums].
func (s *FloatSums) AppendSumsAt(t time.Time, dst []float64) []float64 {
	return s.appendSums(s.ring.clock.nanos(t), false, dst)
}

// Slots returns what Sum(i) adds up, slot by slot, oldest first; see
// [Sums.Slots].
func (s *FloatSums) Slots(i int) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		s.eachSlot(s.ring.notBehind(s.ring.clock.now()), i, yield)
	}
}

// SlotsAt returns what SumAt(t, i) adds up, slot by slot; see [Sums.Slots].
func (s *FloatSums) SlotsAt(t time.Time, i int) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		s.eachSlot(s.ring.clock.nanos(t), i, yield)
	}
}

// Late returns how many calls were refused as late since s was made.
func (s *FloatSums) Late() uint64 { return s.ring.late.Load() }

// Future returns how many calls were refused as future since s was made.
func (s *FloatSums) Future() uint64 { return s.ring.future.Load() }

// Invalid returns how many calls were refused since s was made because the
// amount was NaN or infinite.
func (s *FloatSums) Invalid() uint64 { return s.invalid.Load() }

// Saturated returns how many calls since s was made brought the sum of a slot
// beyond the largest float64, where it stays.
func (s *FloatSums) Saturated() uint64 { return s.ring.saturated.Load() }
