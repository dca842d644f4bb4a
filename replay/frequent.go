package replay

import "slices"

// maxFrequent is how many values of a field a table of frequent values has.
const maxFrequent = 1 << 16

// A frequentTable numbers the values of a field of which only the frequent ones matter, from 1. Up to
// its size each value has a number of its own. Further ones take over those of the least frequent
// (Space-Saving; A. Metwally, D. Agrawal, A. El Abbadi, Efficient computation of frequent and top-k
// elements in data streams, ICDT 2005): the events of a number are those of its value, except at
// most over of other ones before, and the value had at most so many before that have another number.
// After n events over is at most n divided by the size.
type frequentTable struct {
	size   int
	ids    map[string]uint32
	values []string // by number; number 0 has none
	counts []int64  // events by number, of whatever value
	over   []int64  // those of before the value had the number
	full   bool     // a value took over the number of another one
	least  []uint32 // numbers that had the fewest events when they were collected
	fewest int64    // these
}

func newFrequentTable(size int) *frequentTable {
	return &frequentTable{size: size, ids: make(map[string]uint32), values: []string{""}, counts: []int64{0}, over: []int64{0}}
}

// renumber replaces the numbers of a worker, whose values they are, by those of the table. Numbers is
// what it did with values of this worker before.
func (t *frequentTable) renumber(ids []uint32, values []string, numbers *renumbering) {
	numbers.grow(len(values))
	for i, id := range ids {
		if id == 0 {
			continue
		}
		number := numbers.numbers[id]
		if number == 0 || t.values[number] != values[id] {
			number = t.number(values[id])
			numbers.numbers[id] = number
		}
		t.counts[number]++
		ids[i] = number
	}
}

// number returns the number of a value, which gets one if it has none.
func (t *frequentTable) number(value string) uint32 {
	number, ok := t.ids[value]
	if ok {
		return number
	}
	if len(t.values) <= t.size {
		number = uint32(len(t.values))
		t.values, t.counts, t.over = append(t.values, value), append(t.counts, 0), append(t.over, 0)
	} else {
		number = t.leastFrequent()
		delete(t.ids, t.values[number])
		t.values[number], t.over[number], t.full = value, t.counts[number], true
	}
	t.ids[value] = number
	return number
}

// leastFrequent returns the number with the fewest events. They are collected together: the next
// search comes after each of them was used or has more.
func (t *frequentTable) leastFrequent() uint32 {
	for {
		for len(t.least) > 0 {
			number := t.least[len(t.least)-1]
			t.least = t.least[:len(t.least)-1]
			if t.counts[number] == t.fewest {
				return number
			}
		}
		t.fewest = slices.Min(t.counts[1:])
		for number := 1; number < len(t.counts); number++ {
			if t.counts[number] == t.fewest {
				t.least = append(t.least, uint32(number))
			}
		}
	}
}
