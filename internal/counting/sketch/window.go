package sketch

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/ring"
)

// Never is the wait of a cost that can never be allowed.
const Never time.Duration = math.MaxInt64

// A Window returns how much a key was charged with in the last span: exactly or an
// overcount, never an undercount. The package documentation has the proof.
//
// It takes [Bytes] of its Config and never more, whatever the number of keys.
// How much it overcounts depends on what is charged to all keys together: with m
// counters a row, each of a key's counters has on average a share 1/m of what others
// were charged with in the window, and the least of them is taken. A charge counts
// for the span and up to an eighth of it longer.
//
// Keys are seeded 64-bit hashes, so that nobody outside can choose keys that collide.
// Times are in nanoseconds and keep a distance of four spans from the ends of int64.
// They need not be in order, but a key whose counters have all seen times later by a
// span is refused, since what it was charged with is no longer known.
//
// A charge cannot be taken back: another key of the counter may rely on it.
//
// A Window is safe for concurrent use; there are up to 64 locks. Its zero value is
// not usable, call New.
type Window struct {
	cell
	n       uint64
	span    int64
	width   int64  // of a pane
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

// New returns an empty Window.
func New(c Config) *Window {
	w := &Window{
		cell:    cellFor(c.N),
		n:       c.N,
		span:    int64(c.Span),
		columns: uint64(c.columns()),
		parts:   make([]part, c.parts()),
		words:   make([]uint64, c.counterWords()),
	}
	// One place is for the pane that is partly outside and one for times
	// that are behind others by less than a pane.
	w.width = (w.span + w.places - 3) / (w.places - 2)
	w.last.Store(math.MinInt64)
	for i := range w.parts {
		w.parts[i].newest = math.MinInt64
	}
	return w
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

// Lock locks the part of the window that has the key's counters. To judge several
// limits at once, lock the key in each before the first charge; all callers do so in
// the same order, so that there is no deadlock: the limits of a rule and the rules of
// a set in their order, and records of a table before any Window. Two keys of one
// Window are never locked at once.
func (w *Window) Lock(hash uint64) (h Held) {
	h.w = w
	hash = mix(hash)
	p, _ := bits.Mul64(hash, uint64(len(w.parts)))
	h.p = &w.parts[p]
	for r := range uint64(rows) {
		// The part has used up the upper bits of the hash, so each row mixes it.
		column, _ := bits.Mul64(mix(hash+r), w.columns)
		h.at[r] = int((p*rows+r)*w.columns+column) * w.cell.words
	}
	h.p.mu.Lock()
	return h
}

// pane returns the number of the pane that t lies in, which is positive.
func (w *Window) pane(t int64) int64 {
	return ring.FloorDiv(t, w.width) + paneBias
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
