// Package windowtest has the definition of windows and limits, for tests: lists of all counted events, which are read from
// the beginning to the end for each answer. It shares no code with the tested packages.
package windowtest

import (
	"math"
	"slices"
)

// A Charge is N events at one time.
type Charge struct {
	At int64
	N  uint64
}

// Charges are all events of one key, in the order in which they were counted.
type Charges []Charge

// Add appends n events.
func (cs *Charges) Add(at int64, n uint64) { *cs = append(*cs, Charge{at, n}) }

// Sum returns how many events came at times that count, or the largest number.
func (cs Charges) Sum(counts func(at int64) bool) (sum uint64) {
	for _, c := range cs {
		if counts(c.At) {
			sum += min(c.N, math.MaxUint64-sum)
		}
	}
	return sum
}

// In returns how many events came in (t-span, t].
func (cs Charges) In(t, span int64) uint64 {
	return cs.Sum(func(at int64) bool { return t-span < at && at <= t })
}

// Newest returns the newest time, or the least number.
func (cs Charges) Newest() int64 {
	newest := int64(math.MinInt64)
	for _, c := range cs {
		newest = max(newest, c.At)
	}
	return newest
}

// Take takes back up to n events that came at times that count, the oldest first, and returns how many.
func (cs Charges) Take(n uint64, counts func(at int64) bool) (taken uint64) {
	for i := range cs {
		if c := &cs[i]; counts(c.At) {
			part := min(n-taken, c.N)
			c.N -= part
			taken += part
		}
	}
	return taken
}

// Drop removes the events at expired times.
func (cs *Charges) Drop(gone func(at int64) bool) {
	*cs = slices.DeleteFunc(*cs, func(c Charge) bool { return gone(c.At) })
}

// Keys are the events of many keys.
type Keys[K comparable] map[K]*Charges

// Of returns the events of a key.
func (ks Keys[K]) Of(key K) *Charges {
	if ks[key] == nil {
		ks[key] = new(Charges)
	}
	return ks[key]
}
