package limit

import "math"

// fixed is the window of Fixed in a record: when it began, and its count, which
// saturates. The window begins with the first event after the last one ended.
type fixed struct {
	span int64
}

func (f *fixed) advance(w []uint64, t int64) uint64 {
	if w[1] != 0 && t-int64(w[0]) >= f.span {
		w[1] = 0
	}
	return w[1]
}

func (f *fixed) charge(w []uint64, t int64, cost uint64) {
	if w[1] == 0 {
		w[0] = uint64(t)
	}
	w[1] = addSaturated(w[1], cost)
}

func (f *fixed) refund(w []uint64, at int64, cost uint64) uint64 {
	if at < int64(w[0]) {
		return 0
	}
	return takeBack(&w[1], cost)
}

func (f *fixed) until(w []uint64) int64 { return int64(w[0]) + f.span }

func addSaturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// takeBack takes up to cost from count and returns how much: nothing if the
// count has saturated, for nobody knows what did not fit.
func takeBack(count *uint64, cost uint64) uint64 {
	if *count == math.MaxUint64 {
		return 0
	}
	taken := min(cost, *count)
	*count -= taken
	return taken
}
