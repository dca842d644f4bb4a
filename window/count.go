package window

import "github.com/lately-go/lately/internal/counting/ring"

// A Count is the bounds and the estimate of the number of events in a span. To display one
// figure, use Estimate.
type Count struct {
	// Lo is the lower bound: the events in the slots wholly inside the span, with the
	// current slot.
	Lo uint64

	// Hi is the upper bound: Lo and the events in the slot that the beginning of the span
	// cuts.
	Hi uint64

	// Estimate is Lo and the part of that slot's events that is inside the span, if they
	// are spread evenly. For steady traffic it is unbiased; its error is at most Hi-Lo.
	Estimate uint64
}

// newCount returns the Count of (t-span, t] in slots of that width.
func newCount(lo, hi uint64, t, span, width int64) Count {
	if lo == hi {
		return Count{lo, lo, lo}
	}
	return Count{lo, hi, lo + uint64(inside(hi-lo, t, span, width)+0.5)}
}

// inside returns the estimated part within (t-span, t] of count, the count of the slot
// that the window's beginning cuts. That slot may be the newest, which continues after
// t.
func inside(count uint64, t, span, width int64) float64 {
	first, _ := ring.Oldest(t, span, width)
	last := min(first*width-1, t) // that an event of the slot may have had
	return float64(count) * float64(last-(t-span)) / float64(last-(first-1)*width+1)
}
