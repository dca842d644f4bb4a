package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// peakWindows is the windows whose largest counts are reported for top keys.
var peakWindows = []struct {
	name string
	span time.Duration
}{
	{"1s", time.Second}, {"10s", 10 * time.Second}, {"60s", time.Minute}, {"300s", 5 * time.Minute}, {"3600s", time.Hour},
}

// A ranking is the busiest values of a column.
type ranking struct {
	ids      []uint32 // by count, then by bytes
	counts   []int64  // of every value
	distinct int
}

// rank ranks the n busiest values of a column.
func (t *timeline) rank(col, n int) ranking {
	r := ranking{counts: make([]int64, len(t.values[col]))}
	for _, id := range t.cols[col] {
		r.counts[id]++
	}
	r.counts[0] = 0 // no value
	for id, count := range r.counts {
		if count > 0 {
			r.ids = append(r.ids, uint32(id))
		}
	}
	values := t.values[col]
	slices.SortFunc(r.ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(r.counts[b], r.counts[a]), strings.Compare(values[a], values[b]))
	})
	r.distinct = len(r.ids)
	r.ids = r.ids[:min(n, len(r.ids))]
	return r
}

// peaks is, for each value of a column, its largest count in each window.
type peaks [][]int64

// peaksOf counts the peaks of all values of a column.
func (r *run) peaksOf(t *timeline, col int, rank ranking) peaks {
	from, times := t.byValue(col, rank)
	all := make([]int64, len(rank.counts)*len(peakWindows))
	out := make(peaks, len(rank.counts))
	r.parallel(r.Cores, func(part int) {
		for id := part; id < len(out); id += r.Cores {
			own := times[from[id]:from[id+1]]
			if r.FileOrder {
				slices.Sort(own)
			}
			out[id] = all[id*len(peakWindows) : (id+1)*len(peakWindows)]
			for w := range peakWindows {
				out[id][w] = peak(own, r.clock.of(peakWindows[w].span))
			}
		}
	})
	return out
}

// byValue returns the times of each value of a column, in the order of judging: those
// of value id are times[from[id]:from[id+1]].
func (t *timeline) byValue(col int, rank ranking) (from []int, times []int64) {
	from = make([]int, len(rank.counts)+1)
	for id, count := range rank.counts {
		from[id+1] = from[id] + int(count)
	}
	times, next := make([]int64, from[len(rank.counts)]), slices.Clone(from)
	for i, id := range t.cols[col] {
		if id != 0 {
			times[next[id]] = t.times[i]
			next[id]++
		}
	}
	return from, times
}

// topKeys reports the busiest values of a column with their peaks.
func topKeys(t *timeline, col int, rank ranking, p peaks) []TopKey {
	keys := make([]TopKey, len(rank.ids))
	for i, id := range rank.ids {
		keys[i] = TopKey{Keyed: Keyed{Key{t.values[col][id]}}, Count: rank.counts[id], Peaks: make(map[string]int64)}
		for w := range peakWindows {
			keys[i].Peaks[peakWindows[w].name] = p[id][w]
		}
	}
	return keys
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

// timelineParts is how many parts the report's timeline has.
const timelineParts = 60

// picture counts the events in equal parts of the whole time.
func (r *run) picture(times []int64, first, last int64) (counts []int64, bar time.Duration) {
	parts := make([]int64, timelineParts)
	width := (last-first)/timelineParts + 1
	for _, t := range times {
		parts[(t-first)/width]++
	}
	return parts[:(last-first)/width+1], r.clock.time(width).Sub(r.clock.time(0))
}
