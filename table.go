package lately

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/ring"
)

// Bounds of a [Table].
const (
	// MaxTableWindows is the largest number of windows of a Table, 8.
	MaxTableWindows = keytable.MaxBases

	// MaxTableSlots is the largest number of slots of each window.
	MaxTableSlots = 4096

	// MaxTableKey is the longest key of a Table in bytes, 1024.
	MaxTableKey = keytable.MaxKey

	// DefaultTableBudget is the budget of a Table that is not given one.
	DefaultTableBudget = 64 << 20
)

// TableConfig says what a [Table] may take. The zero TableConfig is a table of
// 64 MiB that evicts the coldest keys when these are full.
type TableConfig struct {
	// Budget bounds the memory of the table in bytes: keys, counts and all
	// that is needed to find them. 0 means DefaultTableBudget. It is not
	// taken at once; an empty table has some 2 % of it.
	Budget int64

	// RefuseNew says that a table whose budget is full refuses new keys, unless
	// there are expired keys to evict. To look for these is a scan of a whole
	// group, so that is done for the first key refused and then only after an
	// eighth as many refusals as there are keys in the group.
	//
	// By default the table evicts keys to make space: first expired keys, those
	// with nothing left in their windows, and if there are none the eighth of
	// the keys of one group (some hundreds) with the lowest counts in the longest
	// window; of equal counts, the keys that have been silent longest. A flood of
	// new keys thus evicts its own kind, not the keys that are counted often.
	RefuseNew bool

	// Compare has keys compared in full. Without it a key is known by 64 bits
	// of a hash that is seeded anew for each table: among n keys the chance
	// that any two count as one is about n*n/2^65, for a million keys 1 in 37
	// million, and no one who does not know the seed can raise it. With it
	// there is no such chance, and an add reads the key from memory too.
	Compare bool
}

// A Table counts events by key, for millions of keys, in one or several
// windows each.
//
// For each key it is as exact as a [Counter]: no add that is not refused is
// lost or doubled while the key is held, and the bounds of a read hold. A key
// is held for as long as it has counts in any of its windows and the budget
// lasts; see [TableConfig] for what happens then, and [Table.Stats] for how often
// it did. A key that was forgotten begins at 0 again. Two keys are taken for
// one with a chance given at [TableConfig].
//
// All windows of all keys share one time, that of the newest event: an event is
// late by that, whatever its own key has seen. Times and the two forms of each
// verb are otherwise those of Counter: Add counts what happens now, AddAt what
// happened at a time. Sums are those of the longest window; SumLast and
// BoundsLast take a shorter span, and use the shortest window that holds it.
//
// Memory for a key of 11 bytes, all overhead included, depends on the number of
// keys. On average over a doubling of it, a key takes 50 bytes (37 to 68) with a
// window of one slot, 76 (57 to 103) with 10 slots, 260 (206 to 328) with 60, and
// for the four windows of 1 s, 1 min, 1 h and 24 h 203 (154 to 258) with 10 slots
// each and 955 (808 to 1109) with 60 (64 for the second). At the budget it takes
// about the least. A slot holds 65,535, or 16,777,215 in a window of one slot; a
// key that is counted more often moves to a record of 64-bit slots by itself, and
// keeps it until it is evicted or expires. The garbage collector does not look
// into the memory of keys.
//
// A window of one slot is the cheapest: it keeps two counters, the current slot
// and the one before, so that Bounds are up to a whole window apart. Estimate
// is the weighted sum of the two, known as the sliding window counter; it is
// off by the count of the slot before at most.
//
// An add takes a clock reading, the lock of the key's record and a cache miss or
// two, the first of which comes while the clock is read; a sum the same and some
// two nanoseconds a slot. It waits for others only at the same key, or while its
// group of keys, at most 64 KiB, grows or is tidied: a fraction of a millisecond.
// Nothing allocates but growth. There is no goroutine and no timer, so nothing to
// close: keys with nothing in their windows are removed when their group needs
// memory, and by a sweep that goes on as new keys come. If no new keys come,
// expired keys keep their memory until [Table.Expire] is called.
//
// All methods may be called at any time by any number of goroutines. The zero
// Table is not usable: it panics; call [NewTable]. A Table must not be copied.
//
// The table is extendible hashing: groups of records with open addressing and
// linear probing; hash and counts of a key lie side by side. docs/dev/proofs.md has the
// forms of a record, what is forgotten when, and measured figures.
type Table struct {
	clock   liveClock
	in      *keytable.Table
	full    *keytable.Slab
	budget  *keytable.Budget
	windows []tableWindow // by ascending span
	ahead   *tableWindow  // the one whose Ahead holds, or nil

	_         [64]byte // what follows is written to
	pending   atomic.Int64
	late      atomic.Uint64
	future    atomic.Uint64
	saturated atomic.Uint64
}

// NewTable returns an empty Table that counts in these windows, one at least.
// Their order does not matter; spans must differ. If several have an Ahead, the
// smallest holds for the table. The error, if any, names what is wrong, its
// value and what is allowed.
func NewTable(c TableConfig, windows ...Window) (*Table, error) {
	if len(windows) == 0 || len(windows) > MaxTableWindows {
		return nil, fmt.Errorf("lately: table with %d windows: must be from 1 to %d", len(windows), MaxTableWindows)
	}
	if c.Budget < 0 {
		return nil, fmt.Errorf("lately: table budget %d: must be positive, or 0 for the default of %d", c.Budget, DefaultTableBudget)
	}
	sorted, err := checkedTable(windows)
	if err != nil {
		return nil, err
	}
	tb := &Table{clock: newLiveClock(), budget: keytable.NewBudget(cmp.Or(c.Budget, DefaultTableBudget))}
	tb.pending.Store(none)
	words, full := tb.layOut(sorted)
	tb.full = keytable.NewSlab(full, tb.budget)
	tb.in, err = keytable.New(maphash.MakeSeed(), keytable.Config{
		Words:     words,
		Budget:    tb.budget,
		Reserve:   max(tb.budget.Limit()/50, int64(16*8*full)), // for full records
		Compare:   c.Compare,
		RefuseNew: c.RefuseNew,
		Policy:    tablePolicy{tb},
	})
	if err != nil {
		return nil, fmt.Errorf("lately: table %w with these windows", err)
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
		if w.Span/w.Slot > MaxTableSlots {
			return nil, fmt.Errorf("lately: table window span %v has %d slots of %v; a table takes at most %d, so the slot must be %v or more",
				w.Span, w.Span/w.Slot, w.Slot, MaxTableSlots, (w.Span+MaxTableSlots-1)/MaxTableSlots)
		}
		sorted[i] = w
	}
	slices.SortFunc(sorted, func(a, b Window) int { return cmp.Compare(a.Span, b.Span) })
	for i := range sorted[1:] {
		if sorted[i].Span == sorted[i+1].Span {
			return nil, fmt.Errorf("lately: table with two windows of span %v: spans must differ", sorted[i].Span)
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
		w.init(window, words, full)
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

// Len returns the number of keys held, among them those with nothing in their
// windows any more that have not been forgotten yet.
func (tb *Table) Len() int {
	tb.mustBeMade()
	return tb.in.Len()
}

// mustBeMade panics for the zero Table, and for that of a zero Reading. What begins
// with the clock needs it not.
func (tb *Table) mustBeMade() {
	if tb == nil || tb.in == nil {
		panic(zeroValue)
	}
}

// Remove forgets key and its counts, and reports whether it was held.
func (tb *Table) Remove(key string) bool {
	tb.mustBeMade()
	return tb.in.Remove(tb.in.Hash(key), key)
}

// Expire forgets all keys that have nothing in their windows any more, as of now
// or the newest event, whichever is later, and returns the memory that is no
// longer needed. There is no need to call it but to have memory back early. It
// goes through the table group by group, so that others wait for a group at most.
// The complexity is O(n) where n = Len().
func (tb *Table) Expire() {
	tb.ExpireAt(tb.clock.base.Add(time.Duration(tb.clock.now() - tb.clock.wall)))
}

// ExpireAt is Expire as of t. It moves the windows on to t, as an event would.
func (tb *Table) ExpireAt(t time.Time) {
	tb.mustBeMade()
	for i := range tb.windows {
		tb.windows[i].reach(tb.clock.nanos(t))
	}
	tb.in.Expire()
}

// TableStats says how a [Table] is doing. Numbers of what happened are since it
// was made.
type TableStats struct {
	Keys   int   // held now, see Len
	Full   int   // of these, in records of 64-bit slots
	Bytes  int64 // taken now
	Budget int64 // that may be taken

	Expired   uint64 // keys forgotten with nothing in their windows any more
	Forgotten uint64 // keys forgotten for want of room, counts and all
	Refused   uint64 // calls refused since the key was new and there was no room, or it was too long
	Late      uint64 // calls refused as late
	Future    uint64 // calls refused as future
	Saturated uint64 // calls that did not fit into their slot, as there was no room for a larger one
}

// Stats returns how tb is doing. Its numbers are not of one moment if others
// change the table meanwhile.
func (tb *Table) Stats() TableStats {
	tb.mustBeMade()
	gone := tb.in.Stats()
	return TableStats{
		Keys:      tb.in.Len(),
		Full:      tb.full.Len(),
		Bytes:     tb.budget.Used(),
		Budget:    tb.budget.Limit(),
		Expired:   gone.Expired,
		Forgotten: gone.Evicted,
		Refused:   gone.Refused,
		Late:      tb.late.Load(),
		Future:    tb.future.Load(),
		Saturated: tb.saturated.Load(),
	}
}

// tablePolicy tells the keyed table what their records mean.
type tablePolicy struct{ tb *Table }

// Base sets the bases so that everything in the windows is after them. They are
// multiples of the ring's size, so positions stay as they are.
func (o tablePolicy) Base(base *[keytable.MaxBases]int64) {
	for i := range o.tb.windows {
		w := &o.tb.windows[i]
		base[i] = ring.Floor(w.newest.Load()-w.slots, w.size) * w.size
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
		words := words[w.at:w.end]
		switch stamp := o.tb.stampRel(w, words); {
		case by > stamp:
			clear(words)
		case w.pair():
			words[0] -= uint64(by) << (2 * pairBits)
		default:
			words[0] -= uint64(by)
		}
	}
}

func (tb *Table) stampRel(w *tableWindow, words []uint64) int64 {
	if w.pair() {
		return int64(words[0] >> (2 * pairBits))
	}
	return int64(words[0] & laneMask)
}

func (o tablePolicy) Expired(r keytable.Record) bool {
	for i := range o.tb.windows {
		w := &o.tb.windows[i]
		if o.tb.stamp(w, i, r) >= w.newest.Load()-w.slots {
			return false
		}
	}
	return true
}

// Weight is the count in the longest window, and among equal ones the stamp.
func (o tablePolicy) Weight(r keytable.Record) uint64 {
	const stampBits = 16
	i := len(o.tb.windows) - 1
	w := &o.tb.windows[i]
	newest := w.newest.Load()
	count := o.tb.sum(w, i, r, newest-w.slots, newest)
	age := newest - o.tb.stamp(w, i, r)
	return min(count, 1<<(64-stampBits)-1)<<stampBits | uint64(1<<stampBits-1-min(age, 1<<stampBits-1))
}

func (o tablePolicy) Drop(r keytable.Record) {
	if r.Flag() {
		o.tb.full.Free(uint32(r.Words()[0]))
	}
}
