package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
)

// peakWindows are the windows whose largest counts are reported for top keys.
var peakWindows = []struct {
	name string
	span time.Duration
}{
	{"1s", time.Second}, {"10s", 10 * time.Second}, {"60s", time.Minute}, {"300s", 5 * time.Minute}, {"3600s", time.Hour},
}

// A SuggestedLimit is which limits would fit: for one span, the least N that so many
// of the keys never exceed in any window of that span. A limit of P99 per span would
// have refused nothing to 99 % of the keys.
type SuggestedLimit struct {
	Span string `json:"span"`
	P90  int64  `json:"p90"`
	P99  int64  `json:"p99"`
	P999 int64  `json:"p999"`
	Max  int64  `json:"max"` // no key has more
}

// reportKeys reports the busiest values of the field Config.Key, and which limits would
// fit them.
func (e *events) reportKeys() {
	r, col := e.run, e.run.column(e.run.Key)
	keys := &keyColumn{e.cols[col], e.values[col]}
	from, events := keys.byKey(nil)
	counts := make([]int64, len(keys.texts))
	for id := range counts {
		if counts[id] = int64(from[id+1] - from[id]); counts[id] > 0 {
			e.report.Keys++
		}
	}
	peaks := make([][]int64, len(peakWindows)) // by window and number of the key
	for w := range peaks {
		peaks[w] = make([]int64, len(counts))
	}
	r.parallel(r.Cores, func(part int) {
		var own []int64
		for id := part; id < len(counts); id += r.Cores {
			own = own[:0]
			for _, event := range events[from[id]:from[id+1]] {
				own = append(own, e.times[event])
			}
			if r.FileOrder {
				slices.Sort(own)
			}
			for w := range peakWindows {
				peaks[w][id] = peak(own, int64(peakWindows[w].span))
			}
		}
	})
	for _, id := range keys.largest(r.Top, counts) {
		top := TopKey{Key: api.KeyOf(keys.texts[id]), Count: counts[id], Peaks: make(map[string]int64)}
		for w := range peakWindows {
			top.Peaks[peakWindows[w].name] = peaks[w][id]
		}
		e.report.Top = append(e.report.Top, top)
	}
	e.report.SuggestedLimits = suggest(peaks)
}

// peak returns the largest number of times in any (t-span, t]; times ascend.
func peak(times []int64, span int64) int64 {
	most, from := 0, 0
	for i, t := range times {
		for times[from] <= t-span {
			from++
		}
		most = max(most, i-from+1)
	}
	return int64(most)
}

// suggest returns the limits that fit the peaks of all keys. The peak of a value that no
// event has is 0.
func suggest(peaks [][]int64) []SuggestedLimit {
	var out []SuggestedLimit
	for w, most := range peaks {
		slices.Sort(most)
		first, _ := slices.BinarySearch(most, 1)
		if most = most[first:]; len(most) == 0 {
			return nil
		}
		// least returns the least N that a share of num/1000 never exceeds.
		least := func(num int) int64 { return most[(num*len(most)+999)/1000-1] }
		out = append(out, SuggestedLimit{peakWindows[w].name, least(900), least(990), least(999), most[len(most)-1]})
	}
	return out
}

// largest returns the n keys with the largest counts, largest first; equal ones in the
// order of their bytes. Keys without a count are left out.
func (k *keyColumn) largest(n int, counts []int64) []uint32 {
	compare := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(k.texts[a], k.texts[b]))
	}
	var ids []uint32
	full := false // ids[n-1] is the last of the first n so far
	for id, count := range counts {
		if count == 0 || full && compare(uint32(id), ids[n-1]) > 0 {
			continue
		}
		if ids = append(ids, uint32(id)); len(ids) >= 2*n+64 {
			slices.SortFunc(ids, compare)
			ids, full = ids[:n], true
		}
	}
	slices.SortFunc(ids, compare)
	return ids[:min(n, len(ids))]
}

// timelineParts is how many parts the report's timeline has.
const timelineParts = 60

// countOverTime counts the events in equal parts of the whole time.
func (r *run) countOverTime(times []int64, first, last int64) (counts []int64, bar time.Duration) {
	parts := make([]int64, timelineParts)
	unit := int64(r.resolution)
	width := ((last-first)/unit/timelineParts + 1) * unit
	for _, t := range times {
		parts[(t-first)/width]++
	}
	return parts[:(last-first)/width+1], time.Duration(width)
}
