package window

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
)

// MaxTableKey is the largest length of a key of a [Table], in bytes.
const MaxTableKey = 1024

const (
	maxTableWindows    = keytable.MaxBases
	maxTableSlots      = 4096
	defaultTableBudget = 64 << 20
)

// TableConfig configures a [Table]. The zero TableConfig is a table of 64 MiB that
// evicts the coldest keys when its budget is spent.
type TableConfig struct {
	// Budget is the limit of the memory of the table in bytes, with keys, counts
	// and indexes. 0 means 64 MiB. Memory is allocated as keys
	// come.
	Budget int64

	// RefuseNew makes a table whose budget is spent refuse new keys, unless there
	// are expired keys to evict. Finding these takes a scan of a whole group, so
	// it is done for the first refused key, and then only after an eighth as many
	// refusals as the group has keys.
	//
	// By default the table evicts keys to make space: first expired keys, whose
	// windows are empty, and then, of the some hundred keys in one group, the
	// eighth with the lowest counts in the longest window; among equal counts,
	// the keys without an event for longest. A flood of new keys thus evicts
	// its own keys, not those that are counted often.
	RefuseNew bool
}

// A Table counts events per key, for millions of keys, in one or several windows
// each. Most callers need [Table.Add], [Table.Sum] or [Table.Estimate], and
// [Table.Top].
//
// For each key it is as exact as a [Counter]: no add that is not refused is lost or
// counted twice while the key is held, and the bounds of a read are true. A key is
// held as long as it has counts in any of its windows and the budget is not spent;
// see [TableConfig] for what happens then, and [Table.Stats] for how often it did.
// An evicted key starts again at 0.
//
// All windows of all keys share one time, the time of the newest event, so whether
// an event is late does not depend on its key. Sum, Bounds and Estimate are about the
// longest window; Count takes any span, and uses the shortest window that contains it.
//
// The memory of a key, all overhead included, depends on the number of keys. On
// average over a doubling of it, a key of up to 15 bytes takes 46 bytes (40 to 56) with a
// window of one slot, 69 (61 to 83) with 10 slots, 221 (204 to 252) with 60, and
// for the four windows of 1 s, 1 min, 1 h and 24 h 176 (159 to 199) with 10 slots
// each and 800 (763 to 856) with 60 (64 for the second). A longer key takes
// its bytes more. At the budget it takes about the least. A slot holds 65,535, or
// 16,777,215 in a window of one slot; a key with higher counts moves to a record of 64-bit
// slots and keeps it until it is evicted or expires. The garbage collector does not scan
// keys.
//
// Keys of up to 15 bytes are compared in full. A longer one is identified by 128 bits of
// hashes with random seeds.
//
// A window of one slot is the cheapest. It keeps the current and the previous
// slot, so Bounds differ by up to a whole window. Its Estimate is the weighted
// sum of the two, the common sliding window counter.
//
// An add costs a clock reading, the lock of the key's record and a cache miss or
// two; the first miss overlaps with the clock reading. A sum costs the same and
// about two nanoseconds per slot. Both wait for other goroutines only at the same
// key, or, for a fraction of a millisecond, while the group of the key grows or is
// swept. Nothing allocates except growth. It has no goroutine and no timer, so
// there is nothing to close: expired keys are removed when memory is short, and by
// a sweep that advances as new keys come. If no new keys come, expired keys keep
// their memory until [Table.Expire] is called.
//
// All methods are safe for concurrent use. The zero Table is not usable: it panics;
// call [NewTable]. A Table must not be copied.
//
// The records, the order of eviction and measured figures are described in
// docs/dev/proofs.md.
type Table struct {
	clock   liveClock
	in      *keytable.Table
	full    *keytable.Slab
	budget  *keytable.Budget
	windows []tableWindow // by ascending span
	ahead   *tableWindow  // the one whose Ahead holds, or nil

	_         [64]byte   // what follows is written to
	guard     aheadGuard // of ahead
	late      atomic.Uint64
	saturated atomic.Uint64
}

// NewTable returns an empty Table that counts in these windows, 1 to 8 of up to 4,096 slots
// each. Their order does not matter; spans must differ. If several have an Ahead, the
// smallest holds for the table. The error names the bad field, its value and what it must
// be.
func NewTable(c TableConfig, windows ...Window) (*Table, error) {
	if len(windows) == 0 || len(windows) > maxTableWindows {
		return nil, fmt.Errorf("window: table with %d windows: must be from 1 to %d", len(windows), maxTableWindows)
	}
	if c.Budget < 0 {
		return nil, fmt.Errorf("window: table budget %d: must be positive, or 0 for the default of %d", c.Budget, defaultTableBudget)
	}
	sorted, err := checkedTable(windows)
	if err != nil {
		return nil, err
	}
	tb := &Table{clock: newLiveClock(), budget: keytable.NewBudget(cmp.Or(c.Budget, defaultTableBudget))}
	words, full := tb.layOut(sorted)
	tb.guard.init()
	tb.full = keytable.NewSlab(full, tb.budget)
	tb.in, err = keytable.New(maphash.MakeSeed(), keytable.Config{
		Words:     words,
		Budget:    tb.budget,
		Reserve:   max(tb.budget.Limit()/50, int64(16*8*full)), // for full records
		RefuseNew: c.RefuseNew,
		Policy:    tablePolicy{tb},
	})
	if err != nil {
		return nil, fmt.Errorf("window: table %w with these windows", err)
	}
	return tb, nil
}

// checkedTable returns the windows by ascending span, their defaults filled in.
func checkedTable(windows []Window) ([]Window, error) {
	sorted := make([]Window, len(windows))
	for i, w := range windows {
		w, err := w.checked()
		if err != nil {
			return nil, err
		}
		if w.Span/w.Slot > maxTableSlots {
			return nil, fmt.Errorf("window: table window span %v has %d slots of %v; a table takes at most %d, so the slot must be %v or more",
				w.Span, w.Span/w.Slot, w.Slot, maxTableSlots, (w.Span+maxTableSlots-1)/maxTableSlots)
		}
		sorted[i] = w
	}
	slices.SortFunc(sorted, func(a, b Window) int { return cmp.Compare(a.Span, b.Span) })
	for i := range sorted[1:] {
		if sorted[i].Span == sorted[i+1].Span {
			return nil, fmt.Errorf("window: table with two windows of span %v: spans must differ", sorted[i].Span)
		}
	}
	return sorted, nil
}

// layOut places the windows in the records, and returns how many words a record
// and a full record have.
func (tb *Table) layOut(windows []Window) (words, full int) {
	tb.windows = make([]tableWindow, len(windows))
	for i, window := range windows {
		w := &tb.windows[i]
		w.init(window, i, words, full)
		words, full = w.end, full+1+int(w.size)
		if window.Ahead > 0 && (tb.ahead == nil || window.Ahead < tb.ahead.window.Ahead) {
			tb.ahead = w
		}
	}
	return words, full
}

// Windows returns the windows that tb counts in, by ascending span, their slots
// filled in.
func (tb *Table) Windows() []Window {
	windows := make([]Window, len(tb.windows))
	for i := range windows {
		windows[i] = tb.windows[i].window
	}
	return windows
}

// Len returns the number of keys held, with expired keys that have not been
// removed yet.
func (tb *Table) Len() int {
	tb.mustBeMade()
	return tb.in.Len()
}

// mustBeMade panics for the zero Table, and for a zero Reading. Methods that read
// the clock first do not need it.
func (tb *Table) mustBeMade() {
	if tb == nil || tb.in == nil {
		panic(zeroValue)
	}
}

// Remove deletes key and its counts, and reports whether it was held.
func (tb *Table) Remove(key string) bool {
	tb.mustBeMade()
	return tb.in.Remove(tb.in.Hash(key), key)
}

// Expire removes all keys whose windows are empty now, or at the time of the newest
// event if that is later, and frees their memory. Call it only to free memory
// early. Other goroutines wait for one group at most. The complexity is O(n) where
// n = Len().
func (tb *Table) Expire() {
	tb.ExpireAt(tb.clock.base.Add(time.Duration(tb.clock.now() - tb.clock.wall)))
}

// ExpireAt is Expire as of t. It moves the windows to t, as an event would.
func (tb *Table) ExpireAt(t time.Time) {
	tb.mustBeMade()
	for i := range tb.windows {
		tb.windows[i].reach(tb.clock.nanos(t))
	}
	tb.in.Expire()
}

// TableStats is the size of a [Table], and the numbers of its events since it was
// made.
type TableStats struct {
	Keys   int   // keys held now, see Len
	Full   int   // keys in records of 64-bit slots
	Bytes  int64 // memory used
	Budget int64 // limit of Bytes

	Expired   uint64 // keys removed with nothing left in their windows
	Evicted   uint64 // keys removed with their counts, because the budget was spent
	Refused   uint64 // calls refused because there was no memory for a new key, or it was too long
	Late      uint64 // calls refused as late
	Future    uint64 // calls refused as future
	Saturated uint64 // calls that did not fit into their slot, and there was no memory for a larger record
}

// Stats returns the statistics of tb. It is not atomic while other goroutines
// change the table.
func (tb *Table) Stats() TableStats {
	tb.mustBeMade()
	gone := tb.in.Stats()
	return TableStats{
		Keys:      tb.in.Len(),
		Full:      tb.full.Len(),
		Bytes:     tb.budget.Used(),
		Budget:    tb.budget.Limit(),
		Expired:   gone.Expired,
		Evicted:   gone.Evicted,
		Refused:   gone.Refused,
		Late:      tb.late.Load(),
		Future:    tb.guard.future.Load(),
		Saturated: tb.saturated.Load(),
	}
}

// tablePolicy interprets the records of a Table for its keyed table.
type tablePolicy struct{ tb *Table }

// Base sets the bases so that everything in the windows is after them. They are
// multiples of the ring's size, so positions stay as they are.
func (o tablePolicy) Base(base *[keytable.MaxBases]int64) {
	for i := range o.tb.windows {
		w := &o.tb.windows[i]
		base[i] = ring.FloorDiv(w.newest.Load()-w.slots, w.size) * w.size
	}
}

func (o tablePolicy) Rebase(r keytable.Record, from *[keytable.MaxBases]int64) {
	if r.Flag() {
		return
	}
	words := r.Words()
	for i := range o.tb.windows {
		w := &o.tb.windows[i]
		by := r.Base()[i] - from[i]
		switch {
		case by > w.stamp(words):
			clear(words[w.at:w.end])
		case w.pair():
			words[w.at] -= uint64(by) << (2 * pairBits)
		default:
			words[w.at] -= uint64(by)
		}
	}
}

func (o tablePolicy) Expired(r keytable.Record) bool {
	for i := range o.tb.windows {
		w := &o.tb.windows[i]
		if o.tb.stamp(w, r) >= w.newest.Load()-w.slots {
			return false
		}
	}
	return true
}

// Weight is the count in the longest window, and among equal ones the stamp.
func (o tablePolicy) Weight(r keytable.Record) uint64 {
	const stampBits = 16
	w := &o.tb.windows[len(o.tb.windows)-1]
	newest := w.newest.Load()
	count := o.tb.sum(w, r, newest-w.slots, newest)
	age := newest - o.tb.stamp(w, r)
	return min(count, 1<<(64-stampBits)-1)<<stampBits | uint64(1<<stampBits-1-min(age, 1<<stampBits-1))
}

func (o tablePolicy) Drop(r keytable.Record) {
	if r.Flag() {
		o.tb.full.Free(uint32(r.Words()[0]))
	}
}
