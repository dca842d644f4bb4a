package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/counting/heap"
)

// peakWindows are the windows whose largest counts are reported for top keys.
var peakWindows = []struct {
	name string
	span time.Duration
}{
	{"1s", time.Second}, {"10s", 10 * time.Second}, {"60s", time.Minute}, {"300s", 5 * time.Minute}, {"3600s", time.Hour},
}

// A SuggestedLimit gives, for one span, the smallest N that 90, 99 and 99.9 % of the
// keys never exceed in any window. A limit of P99 per span would have refused
// nothing to 99 % of the keys.
type SuggestedLimit struct {
	Span string `json:"span"`
	P90  int64  `json:"p90"`
	P99  int64  `json:"p99"`
	P999 int64  `json:"p999"`
	Max  int64  `json:"max"` // the largest count of any key

	// KeysAbove are pairs of an N and the number of keys with more than N events
	// in some window of the span: the keys that algorithm exact refuses at least
	// once under a limit of N. There is a pair for each N that is the largest
	// count of a key, at most 200; between two of these the number does not
	// change.
	KeysAbove [][2]int64 `json:"keys_above,omitempty"`
}

// reportKeys reports the busiest keys, and which limits would fit them.
func (e *events) reportKeys() {
	c := e.top
	for _, n := range c.counts {
		e.report.Keys += int(min(n, 1))
	}
	for _, id := range c.keys.largest(e.run.Top, e.order()) {
		top := TopKey{Key: c.keys.keyOf(id), Count: c.counts[id], Peaks: make(map[string]int64)}
		for w := range peakWindows {
			top.Peaks[peakWindows[w].name] = c.peaks[w][id]
		}
		if e.run.Sort == SortRefused {
			top.Refused = new(e.refused[id])
		}
		e.report.Top = append(e.report.Top, top)
	}
	e.report.SuggestedLimits = suggest(c.peaks)
}

// A Sort is an order of the busiest keys.
type Sort string

// The orders of the busiest keys.
const (
	SortCount   Sort = "count"   // events; the default
	SortPeak    Sort = "peak"    // largest number of events in any minute
	SortRefused Sort = "refused" // events that a limit or ban refused; other keys are omitted
)

// order returns the numbers that the busiest keys are ordered by.
func (e *events) order() []int64 {
	switch e.run.Sort {
	case SortPeak:
		return e.top.peaks[2] // of a minute
	case SortRefused:
		return e.refused
	}
	return e.top.counts
}

// countRefused counts the events of the chunk that a limit or ban refused.
func (e *events) countRefused() {
	if e.run.Sort != SortRefused {
		return
	}
	e.refused = grown(e.refused, len(e.top.keys.texts))
	for i, id := range e.top.keys.ids {
		if id != 0 && slices.ContainsFunc(e.judgings, func(j *judging) bool { return j.compared == nil && j.outcomes[i] >= refused }) {
			e.refused[id]++
		}
	}
}

// keyCounts is, for each key of a column, how many events it has, and the most of them in
// any window of some spans.
type keyCounts struct {
	keys   *keyColumn
	spans  []time.Duration
	counts []int64
	peaks  [][]int64 // by span and number of the key
	recent moments   // of the longest span
}

func newKeyCounts(keys *keyColumn, spans []time.Duration) *keyCounts {
	return &keyCounts{keys: keys, spans: spans, peaks: make([][]int64, len(spans)), recent: moments{span: int64(slices.Max(spans))}}
}

// countKeys counts the events of the chunk, or those that have that outcome.
func (e *events) countKeys(c *keyCounts, keep func(event int) bool) {
	n := len(c.keys.texts)
	c.counts = grown(c.counts, n)
	for w := range c.peaks {
		c.peaks[w] = grown(c.peaks[w], n)
	}
	if e.run.Lateness == 0 {
		from, events := c.keys.byKey(keep)
		c.count(e.run, n, func(own []moment, id int) ([]moment, int, uint32) {
			own = e.momentsOf(own, events[from[id]:from[id+1]])
			return own, len(own), uint32(id)
		})
		return
	}
	ids := c.keys.ids
	if keep != nil {
		ids = kept(ids, keep)
	}
	keys, first := c.recent.add(e.times, ids, n)
	c.count(e.run, len(keys), func(own []moment, k int) ([]moment, int, uint32) {
		own, added := c.recent.of(own, keys[k], first)
		return own, added, keys[k]
	})
	c.recent.trim(e.times[len(e.times)-1])
}

// momentsOf appends to dst the times of some events, which are in the order of judging, the
// newest first.
func (e *events) momentsOf(dst []moment, own []int32) []moment {
	for _, event := range slices.Backward(own) {
		at := e.times[event]
		if n := len(dst); n > 0 && dst[n-1].at == at {
			dst[n-1].n++ // there are at most maxEvents
			continue
		}
		dst = append(dst, moment{at: at, n: 1})
	}
	return dst
}

// count counts the events of so many keys. of appends to own the moments of the k-th, the
// newest first, and returns how many of them are new, and the number of the key.
func (c *keyCounts) count(r *run, keys int, of func(own []moment, k int) (all []moment, added int, id uint32)) {
	r.parallel(r.Cores, func(part int) {
		var own []moment
		for k := part; k < keys; k += r.Cores {
			var added int
			var id uint32
			own, added, id = of(own[:0], k)
			for _, m := range own[:added] {
				c.counts[id] += int64(m.n)
			}
			for w, span := range c.spans {
				c.peaks[w][id] = max(c.peaks[w][id], peak(own, added, int64(span)))
			}
		}
	})
}

// suggest returns the limits that fit the peaks of all keys. The peak of a value that no
// event has is 0.
func suggest(peaks [][]int64) []SuggestedLimit {
	var out []SuggestedLimit
	for w, most := range peaks {
		most = slices.Clone(most)
		slices.Sort(most)
		first, _ := slices.BinarySearch(most, 1)
		if most = most[first:]; len(most) == 0 {
			return nil
		}
		// least returns the least N that a share of num/1000 never exceeds.
		least := func(num int) int64 { return most[(num*len(most)+999)/1000-1] }
		out = append(out, SuggestedLimit{peakWindows[w].name, least(900), least(990), least(999), most[len(most)-1], keysAbove(most)})
	}
	return out
}

// maxSteps is how many pairs a SuggestedLimit has.
const maxSteps = 200

// keysAbove returns pairs of a peak and how many of the peaks, which ascend, are above it.
func keysAbove(peaks []int64) (steps [][2]int64) {
	for i, n := range peaks {
		if i+1 == len(peaks) || peaks[i+1] > n {
			steps = append(steps, [2]int64{n, int64(len(peaks) - i - 1)})
		}
	}
	if len(steps) <= maxSteps {
		return steps
	}
	some := make([][2]int64, maxSteps)
	for i := range some {
		some[i] = steps[i*(len(steps)-1)/(maxSteps-1)]
	}
	return some
}

// largest returns the n keys with the largest counts, largest first; equal ones in the
// order of their bytes. Keys without a count are left out, and so is number 0.
func (c *keyColumn) largest(n int, counts []int64) []uint32 {
	top := heap.NewTop(n, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(c.texts[a], c.texts[b]))
	})
	for id, count := range counts {
		if count > 0 && id > 0 {
			top.Add(uint32(id))
		}
	}
	return top.Items()
}
