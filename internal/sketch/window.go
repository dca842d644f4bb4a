package sketch

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Never is the wait of a cost that can never be admitted.
const Never time.Duration = -1

// A Window says how much a key was charged with in the last span: exactly, or
// too much, never too little; see the package documentation for why.
//
// It takes [Bytes] of its Config and never more, whatever the number of keys.
// How much too much it says depends on what is charged to all keys together:
// with m counters a row, each of a key's rows is off by a share 1/m of what
// others were charged with in the window, on average, and the least of the rows
// is taken. A key that shares all of its counters with others, one by one,
// answers for them: it is refused too much. A charge counts for the span and up
// to an eighth of it longer.
//
// Keys are seeded 64-bit hashes, of which nobody outside can choose two that
// meet. Times are in nanoseconds and keep a distance of four spans from the
// ends of int64. They need not be in order, but what has been pushed out by
// later times is unknown, and unknown is taken for full: a key whose counters
// have all seen times later by a span is refused.
//
// There is no way to take a charge back: another key of the counter may rely on
// it.
//
// A Window is safe for concurrent use; two keys meet in one lock with a
// probability of 1/Parts. Its zero value is not usable, call New.
type Window struct {
	cell
	n       uint64
	span    int64
	width   int64 // of a pane
	rows    int
	columns uint64 // counters of a row in one part
	parts   []part
	words   []uint64 // cells: by part, then row, then column
	last    atomic.Int64
}

// A part is the counters under one lock.
type part struct {
	mu     sync.Mutex
	newest int64 // the latest time charged. Guarded by mu.

	_ [64 - unsafe.Sizeof(sync.Mutex{}) - 8]byte // one cache line
}

// New returns an empty Window. An error names the field that is not allowed.
func New(c Config) (*Window, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	w := &Window{
		cell:    cellFor(c.N),
		n:       c.N,
		span:    int64(c.Span),
		rows:    c.Rows,
		columns: uint64(c.columns()),
		parts:   make([]part, c.Parts),
		words:   make([]uint64, c.counterBytes()/8),
	}
	// One place is for the pane that is partly outside and one for times
	// that are behind others by less than a pane.
	w.width = (w.span + w.places - 3) / (w.places - 2)
	w.last.Store(math.MinInt64)
	for i := range w.parts {
		w.parts[i].newest = math.MinInt64
	}
	return w, nil
}

// Take charges the key with cost at time t if it is admitted, that is if its
// count and cost are at most N, and reports whether it is, in one atomic step.
// used is the key's count before, math.MaxUint64 if that is unknown. wait is 0
// if ok; else, how long after t the same cost would be admitted if nothing were
// charged until then, or Never if cost is above N.
func (w *Window) Take(hash uint64, t int64, cost uint64) (ok bool, used uint64, wait time.Duration) {
	h := w.Lock(hash)
	defer h.Unlock()
	used, keep := h.walk(t, w.n-min(cost, w.n))
	switch {
	case cost > w.n:
		return false, used, Never
	case used <= w.n-cost:
		h.Charge(t, cost)
		return true, used, 0
	}
	return false, used, time.Duration(w.gone(keep) - t)
}

// Used is [Held.Used] for a caller who holds nothing.
func (w *Window) Used(hash uint64, t int64) uint64 {
	h := w.Lock(hash)
	defer h.Unlock()
	return h.Used(t)
}

// Charge is [Held.Charge] for a caller who holds nothing.
func (w *Window) Charge(hash uint64, t int64, cost uint64) {
	h := w.Lock(hash)
	defer h.Unlock()
	h.Charge(t, cost)
}

// Until returns the time from which on w is empty if nothing more is charged,
// and math.MinInt64 if nothing ever was. It locks nothing.
func (w *Window) Until() int64 {
	pane := w.last.Load()
	if pane == math.MinInt64 {
		return pane
	}
	return w.gone(pane + 1)
}

// Noise returns by how much the count of a key is too high at time t, on
// average over keys that were charged with nothing, and the share of such keys
// that would be refused for it. It is an estimate from a thousand keys, and
// locks a part for each.
func (w *Window) Noise(t int64) (mean, refused float64) {
	const samples = 1000
	for i := range uint64(samples) {
		used := w.Used(mix(^i), t)
		if used >= w.n {
			refused++
		}
		mean += float64(min(used, w.n))
	}
	return mean / samples, refused / samples
}

// Lock waits until the part of the window that has the key's counters is the
// caller's alone. Who judges several limits at once locks the key in each
// before the first charge; so that nobody waits in a circle, all do so in the
// same order: the limits of a rule in theirs, the rules of a set in theirs, and
// records of a table before any Window. Two keys of one Window are never locked
// at once.
func (w *Window) Lock(hash uint64) (h Held) {
	h.w = w
	hash = mix(hash)
	p, _ := bits.Mul64(hash, uint64(len(w.parts)))
	h.p = &w.parts[p]
	row := p * uint64(w.rows)
	for r := range w.rows {
		// The part has used up the upper bits of the hash, so that each row
		// is mixed anew.
		column, _ := bits.Mul64(mix(hash+uint64(r)), w.columns)
		h.at[r] = int((row+uint64(r))*w.columns+column) * w.cell.words
	}
	h.p.mu.Lock()
	return h
}

// pane returns the number of the pane that t lies in, which is positive.
func (w *Window) pane(t int64) int64 {
	k := t / w.width
	if k*w.width > t {
		k--
	}
	return k + paneBias
}

// oldest returns the oldest pane that is not wholly outside (t-span, t].
func (w *Window) oldest(t int64) int64 { return w.pane(t - w.span + 1) }

// gone returns the first time at which pane is the oldest in the window.
func (w *Window) gone(pane int64) int64 { return (pane-paneBias)*w.width + w.span - 1 }

// mix is the finalizer of splitmix64 (G. Steele, D. Lea, C. Flood, Fast
// splittable pseudorandom number generators, OOPSLA 2014), a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
