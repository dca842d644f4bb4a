package replay

import "slices"

// A Fit says which limits would fit: for one span, the least N for which so
// many of the keys never have more than N events in any window of that span. A
// limit of P99 per span would have left alone 99 % of the keys.
type Fit struct {
	Span string `json:"span"`
	P90  int64  `json:"p90"`
	P99  int64  `json:"p99"`
	P999 int64  `json:"p999"`
	Max  int64  `json:"max"` // no key has more
}

// fits reads the fitting limits off the peaks of all keys.
func fits(rank ranking, p peaks) []Fit {
	if rank.distinct == 0 {
		return nil
	}
	out := make([]Fit, len(peakWindows))
	most := make([]int64, 0, rank.distinct)
	for w := range peakWindows {
		most = most[:0]
		for id, count := range rank.counts {
			if count > 0 {
				most = append(most, p[id][w])
			}
		}
		slices.Sort(most)
		// least returns the least N that a share of num/1000 never exceeds.
		least := func(num int) int64 { return most[(num*len(most)+999)/1000-1] }
		out[w] = Fit{peakWindows[w].name, least(900), least(990), least(999), most[len(most)-1]}
	}
	return out
}
