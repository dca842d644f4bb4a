package lately

import (
	"math"
	"time"
)

// The reads of FloatSums, which add up sums and errors in a wideFloat.

func (s *FloatSums) sum(t, span int64, live bool, i int) (sum float64) {
	s.ring.view(t, span, live, func(v sumView) { sum = v.float64(v.inside(i)) })
	return sum
}

func (s *FloatSums) bounds(t int64, live bool, i int) (lo, hi float64) {
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		lo = v.float64(v.inside(i))
		hi = lo
		if v.cut {
			hi = v.float64(floatTerm{i, v.first - 1, v.first - 1, 1}, v.inside(i))
		}
	})
	return min(lo, hi), max(lo, hi)
}

func (s *FloatSums) net(t int64, live bool, plus, minus int) (net float64) {
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		net = v.float64(v.inside(plus), floatTerm{minus, v.first, v.last, -1})
	})
	return net
}

func (s *FloatSums) appendSums(t int64, live bool, dst []float64) []float64 {
	before := len(dst)
	s.ring.view(t, int64(s.ring.window.Span), live, func(v sumView) {
		dst = dst[:before]
		for i := range v.r.sums {
			dst = append(dst, v.float64(v.inside(i)))
		}
	})
	return dst
}

func (s *FloatSums) eachSlot(t int64, i int, yield func(time.Time, float64) bool) {
	s.ring.eachSlot(t, func(start time.Time, slot int64) bool {
		var sum float64
		s.ring.viewSlot(slot, func(v sumView) { sum = v.float64(v.inside(i)) })
		return yield(start, sum)
	})
}

// A floatTerm is the slots first to last of sum i, times sign, which is 1 or -1.
type floatTerm struct {
	i           int
	first, last int64
	sign        float64
}

func (v sumView) inside(i int) floatTerm { return floatTerm{i, v.first, v.last, 1} }

// float64 returns the sum of the terms, rounded once. If that is out of range on
// the way, it is added up again with all values scaled down by a power of two,
// which rounds none of those that matter then.
func (v sumView) float64(terms ...floatTerm) float64 {
	w := wideFloat{scale: 1}
	w.add(v, terms)
	if sum := w.sum + w.rounding; sum-sum == 0 {
		return sum
	}
	const scale = 1 << 60
	w = wideFloat{scale: 1.0 / scale}
	w.add(v, terms)
	return finite((w.sum + w.rounding) * scale)
}

// A wideFloat adds up float64 values and, apart, the errors that this makes.
type wideFloat struct {
	sum, rounding, scale float64
}

func (w *wideFloat) add(v sumView, terms []floatTerm) {
	for _, term := range terms {
		cells, scale := v.cells(term.i), term.sign*w.scale
		for s := term.first; s <= term.last; s++ {
			at := v.at(s)
			var rounding float64
			w.sum, rounding = twoSum(w.sum, scale*math.Float64frombits(cells[at].Load()))
			w.rounding += rounding + scale*math.Float64frombits(cells[at+1].Load())
		}
	}
}
