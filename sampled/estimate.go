package sampled

import (
	"fmt"
	"math"
)

// An Estimate is an estimated number of events, of which Counted were counted,
// each with probability P. It is a plain value.
type Estimate struct {
	Counted uint64
	P       float64
}

// Count returns the estimated number of events. It is unbiased.
func (e Estimate) Count() float64 { return float64(e.Counted) / e.P }

// StdErr returns the standard error of Count: in two cases out of three the
// true number differs from Count by less. If nothing was counted it is 0 and
// has no meaning; Interval is valid even then.
func (e Estimate) StdErr() float64 {
	return math.Sqrt(float64(e.Counted)*(1-e.P)) / e.P
}

// Interval returns an interval that contains the true number with at least the
// confidence of z: 1.96 for 95 %, 2.58 for 99 %. This holds even if few or no
// events were counted.
//
// It is the score interval of Wilson (1927) with the continuity correction: all
// numbers of events N for which the number counted, corrected by half an event,
// is within z standard deviations of its mean PN.
func (e Estimate) Interval(z float64) (lo, hi float64) {
	k, q := float64(e.Counted), 1-e.P
	if q == 0 {
		return k, k
	}
	ends := func(k float64) (middle, width float64) {
		return k + z*z*q/2, z * math.Sqrt(q*(k+z*z*q/4))
	}
	if k > 0 {
		middle, width := ends(k - 0.5)
		lo = max(k, (middle-width)/e.P)
	}
	middle, width := ends(k + 0.5)
	return lo, (middle + width) / e.P
}

// String returns the estimate and its 95 % interval, as "51200 (46900 to 55900
// at 95 %)", rounded to the significant digits, or only the count if it is exact.
func (e Estimate) String() string {
	if e.P == 1 {
		return fmt.Sprint(e.Counted)
	}
	lo, hi := e.Interval(1.96)
	unit := math.Pow(10, max(0, math.Floor(math.Log10(max(1, hi-lo)))-1))
	lo, hi = math.Floor(lo/unit)*unit, math.Ceil(hi/unit)*unit
	return fmt.Sprintf("%.0f (%.0f to %.0f at 95 %%)", math.Round(e.Count()/unit)*unit, lo, hi)
}
