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

// topKeys reports the busiest values of a column with their peaks.
func (r *run) topKeys(t *timeline, col int, rank ranking) []TopKey {
	ids, counts := rank.ids, rank.counts
	place := make([]int, len(counts)) // 1 + index in ids
	times := make([][]int64, len(ids))
	for i, id := range ids {
		place[id] = i + 1
		times[i] = make([]int64, 0, counts[id])
	}
	for i, id := range t.cols[col] {
		if p := place[id]; p > 0 {
			times[p-1] = append(times[p-1], t.times[i])
		}
	}
	keys := make([]TopKey, len(ids))
	r.parallel(len(ids), func(i int) {
		if r.FileOrder {
			slices.Sort(times[i])
		}
		k := TopKey{Keyed: Keyed{Key{t.values[col][ids[i]]}}, Count: counts[ids[i]], Peaks: make(map[string]int64)}
		for _, w := range peakWindows {
			k.Peaks[w.name] = peak(times[i], r.clock.of(w.span))
		}
		keys[i] = k
	})
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
