package replay

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/accesslog"
)

// A timeline is all events in the order in which they are judged: a time, and for each
// field that rules use the number of the value.
type timeline struct {
	times  []int64 // nanoseconds since 1970
	cols   [][]uint32
	values [][]string       // for each column, the value of each number; number 0 has none
	top    []*frequentTable // for each column, of which the values are; nil if each value has a number of its own
	places []position       // nil if the run keeps no positions
}

// A position is a line of a file: the number of the file in Config.Files, and below it
// that of the line, from 1.
type position uint64

const positionBits = 40 // of the line

func (p position) file() int { return int(p >> positionBits) }

func (p position) line() int64 { return int64(p & (1<<positionBits - 1)) }

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

// split returns the events of b that are older than a time, and the others; nil if there
// are none.
func (b *parsed) split(before int64) (old, newer *parsed) {
	n := len(b.times)
	if before != math.MaxInt64 {
		n = 0
		for _, t := range b.times {
			if t < before {
				n++
			}
		}
	}
	switch n {
	case len(b.times):
		return b, nil
	case 0:
		return nil, b
	}
	old = &parsed{block: b.block, numbers: b.numbers, values: b.values, times: slices.Clone(b.times), places: slices.Clone(b.places)}
	for _, col := range b.cols {
		old.cols = append(old.cols, slices.Clone(col))
	}
	old.filter(func(t int64) (int64, bool) { return t, t < before })
	b.filter(func(t int64) (int64, bool) { return t, t >= before })
	return old, b
}

// lastUndated returns the index of the last event whose time has no year, -1 if there is none.
func (b *parsed) lastUndated() int {
	i := len(b.years) - 1
	for i >= 0 && b.years[i] == withYear {
		i--
	}
	return i
}

// nextDated returns the time of the event with a year that follows the last one without.
func (b *parsed) nextDated() (t time.Time, ok bool) {
	i := b.lastUndated() + 1
	if i == len(b.times) {
		return t, false
	}
	return time.Unix(0, b.times[i]), true
}

// yearOfFirst returns the year of a file's first line without one: the last year in which the
// last such event is not after next, the next event with a year, or the time at which the file was
// modified. last is the last dated line. Clocks that write a line may be ahead of UTC.
func yearOfFirst(blocks []*parsed, last, next time.Time) int {
	const furthestAhead = 14 * time.Hour
	latest := next.UTC().Add(furthestAhead)
	first := latest.Year()
	if !last.IsZero() {
		first -= accesslog.YearsAfter(last, last)
	}
	for _, b := range slices.Backward(blocks) {
		if i := b.lastUndated(); i >= 0 {
			if t, ok := accesslog.InYear(time.Unix(0, b.times[i]), first+b.after); ok && t.After(latest) {
				first--
			}
			break
		}
	}
	return first
}

// date gives the times of a block without years those of a year, and returns how many
// lines turned out to be bad: those of a 29 February in a common year.
func (b *parsed) date(year int) (bad int64) {
	date := func(nanos int64) (int64, bool) {
		t, ok := accesslog.InYear(time.Unix(0, nanos), year)
		if !ok || !inRange(t) {
			return 0, false
		}
		return t.UnixNano(), true
	}
	if b.standIn != noSpan {
		for _, nanos := range []int64{b.standIn.first, b.standIn.last} {
			if t, ok := date(nanos); ok {
				b.whole.add(logSpan{t, t})
			}
		}
	}
	event := -1
	b.filter(func(nanos int64) (int64, bool) {
		event++
		if b.years[event] == withYear {
			return nanos, true
		}
		t, ok := date(nanos)
		if !ok && b.years[event] == noYear {
			bad++
		}
		return t, ok
	})
	return bad
}
