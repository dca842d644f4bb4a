package replay

import (
	"slices"
	"time"

	"github.com/lately-go/lately/accesslog"
)

// A timeline is all events in the order in which they are judged: a time, and for each
// field that rules use the number of the value.
type timeline struct {
	times  []int64 // nanoseconds since 1970
	cols   [][]uint32
	values [][]string // for each column, the value of each number; number 0 has none
	places []position // nil if the run keeps no positions
}

// A position is a line of a file: the number of the file in Config.Files, and below it
// that of the line, from 1.
type position uint64

const positionBits = 40 // of the line

// assemble brings the parsed blocks, in the order of the files, into one
// timeline, with one numbering of values in place of the workers' own.
func (r *run) assemble(blocks []*parsed, workers []*worker) *timeline {
	t := &timeline{cols: make([][]uint32, len(r.fields)), values: make([][]string, len(r.fields))}
	total := 0
	for _, b := range blocks {
		total += len(b.times)
	}
	t.times = make([]int64, 0, total)
	for _, b := range blocks {
		t.times = append(t.times, b.times...)
		b.times = nil
	}
	if r.positions {
		t.places = r.linesOf(blocks, total)
	}
	if r.Resolution != 0 {
		for i, nanos := range t.times {
			t.times[i] = floorDiv(nanos, int64(r.Resolution)) * int64(r.Resolution)
		}
	}
	r.parallel(len(r.fields), func(c int) {
		all := newInterner()
		of := make([]renumbering, len(workers))
		for i, w := range workers {
			of[i] = renumbering{from: w.columns[c], to: all, numbers: make([]uint32, len(w.columns[c].values)+1)}
			w.columns[c] = nil
		}
		col := make([]uint32, 0, total)
		for _, b := range blocks {
			col = of[b.worker].append(col, b.cols[c])
			b.cols[c] = nil
		}
		t.cols[c] = col
		t.values[c] = all.texts()
	})
	return t
}

// linesOf returns the positions of all events.
func (r *run) linesOf(blocks []*parsed, total int) []position {
	places := make([]position, 0, total)
	before := make([]int64, len(r.Files)) // lines of each file in earlier blocks
	for _, b := range blocks {
		first := position(b.file)<<positionBits + position(before[b.file])
		for _, line := range b.places {
			places = append(places, first+line)
		}
		before[b.file] += b.lines
		b.places = nil
	}
	return places
}

// sort puts the events in the order of their times, which are multiples of unit; those
// of the same time keep their order.
func (t *timeline) sort(unit time.Duration) {
	if slices.IsSorted(t.times) {
		return
	}
	order := stableOrder(t.times, int64(unit))
	t.times = reordered(t.times, order)
	if t.places != nil {
		t.places = reordered(t.places, order)
	}
	for i := range t.cols {
		t.cols[i] = reordered(t.cols[i], order)
	}
}

func reordered[T any](s []T, order []uint32) []T {
	out := make([]T, len(s))
	for i, from := range order {
		out[i] = s[from]
	}
	return out
}

// stableOrder returns the indexes of times in ascending order of time, equal
// ones in ascending order of index: a least-significant-digit radix sort over
// only as many digits as the span of the times has, in units of which they are multiples.
func stableOrder(times []int64, unit int64) []uint32 {
	const bits = 11
	least := slices.Min(times)
	span := uint64(slices.Max(times)-least) / uint64(unit)
	order, next := make([]uint32, len(times)), make([]uint32, len(times))
	for i := range order {
		order[i] = uint32(i)
	}
	for shift := 0; shift < 64 && span>>shift != 0; shift += bits {
		var starts [1 << bits]uint32
		for _, t := range times {
			starts[uint64((t-least)/unit)>>shift&(1<<bits-1)]++
		}
		sum := uint32(0)
		for d, n := range starts {
			starts[d] = sum
			sum += n
		}
		for _, i := range order {
			d := uint64((times[i]-least)/unit) >> shift & (1<<bits - 1)
			next[starts[d]] = i
			starts[d]++
		}
		order, next = next, order
	}
	return order
}

// date gives the times of a file whose format has no year their real ones, and
// returns the year of its first line. The blocks are the file's, in order. Lines
// that turn out to be a 29 February in a common year are bad.
func (r *run) date(blocks []*parsed, modified time.Time) int {
	offsets := make([]int, len(blocks)) // years after that of the first line
	year, last := 0, time.Time{}
	for i, b := range blocks {
		if b.dated {
			if !last.IsZero() {
				year = accesslog.YearsAfter(last, b.first)
			}
			last = b.last.AddDate(0, 0, year*accesslog.LeapYearDays)
		}
		offsets[i] = year
	}
	first := r.Year
	if first == 0 {
		first = yearOfFirst(blocks, offsets, last, modified)
	}
	for i, b := range blocks {
		r.dateBlock(b, first+offsets[i])
	}
	return first
}

// yearOfFirst returns the year of a file's first line: the last one in which the
// last event is not after the file was modified. offsets are the years of the blocks
// after that of the first line. Clocks that write a line may be ahead of UTC.
func yearOfFirst(blocks []*parsed, offsets []int, last, modified time.Time) int {
	const furthestAhead = 14 * time.Hour
	latest := modified.UTC().Add(furthestAhead)
	first := latest.Year()
	if !last.IsZero() {
		first -= accesslog.YearsAfter(last, last)
	}
	for i, b := range slices.Backward(blocks) {
		if n := len(b.times); n > 0 {
			if t, ok := accesslog.InYear(time.Unix(0, b.times[n-1]), first+offsets[i]); ok && t.After(latest) {
				first--
			}
			break
		}
	}
	return first
}

func (r *run) dateBlock(b *parsed, year int) {
	date := func(nanos int64) (int64, bool) {
		t, ok := accesslog.InYear(time.Unix(0, nanos), year)
		if !ok || !inRange(t) {
			return 0, false
		}
		return t.UnixNano(), true
	}
	whole := b.whole
	b.whole = noSpan
	for _, nanos := range []int64{whole.first, whole.last} {
		if t, ok := date(nanos); ok && whole != noSpan {
			b.whole.add(logSpan{t, t})
		}
	}
	b.bad += b.filter(date)
}
