package window

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
)

// A KeyCount is a key and its count in the span of [Table.Top].
type KeyCount struct {
	Key string
	Count
}

// Top returns the n keys with the largest sums over a span that ends now, the largest
// first; of equal sums, the alphabetically first key first. The sum is Lo. Keys whose
// sum is 0 are omitted. With n <= 0, Top returns no keys. It returns an error if span
// is not positive or is longer than all windows.
//
// It goes through the table once, group by group: each key is read atomically; different keys
// are not. Other goroutines wait for a key at most, and new keys for a group. The complexity
// is O(k + m log n) where k = Len() and m <= k counts the keys that are among the first n of
// those read before them.
func (tb *Table) Top(n int, span time.Duration) ([]KeyCount, error) {
	return tb.top(n, live(tb.clock.now()), span)
}

// TopAt is Top for a span that ends at t.
func (tb *Table) TopAt(t time.Time, n int, span time.Duration) ([]KeyCount, error) {
	return tb.top(n, tb.clock.at(t), span)
}

func (tb *Table) top(n int, m moment, span time.Duration) ([]KeyCount, error) {
	part, err := tb.part(span)
	if err != nil || n <= 0 {
		return nil, err
	}
	t := part.timeOf(m)
	top := heap.NewTop(n, compareCounts)
	for key, r := range tb.in.All() {
		lo, hi := tb.boundsOf(r, t, part)
		if last, _ := top.Last(); lo > 0 && lo >= last.Lo {
			top.Add(KeyCount{string(key), Count{Lo: lo, Hi: hi}})
		}
	}
	leaders := top.Items()
	for i := range leaders {
		leaders[i].Count = newCount(leaders[i].Lo, leaders[i].Hi, t, part.span, part.width)
	}
	return leaders, nil
}

func compareCounts(a, b KeyCount) int {
	return cmp.Or(cmp.Compare(b.Lo, a.Lo), cmp.Compare(a.Key, b.Key))
}

// A Reading is a copy of the counts of one key in all windows of a [Table], at one
// moment. It is safe for concurrent use. [Table.Read] and [Table.All] return Readings; the
// zero Reading is not usable.
type Reading struct {
	tb     *Table
	at     int64
	counts []uint64 // of each window, the slots of its ring, the newest last
}

// Read returns the counts of key now, zeros for a key that is not held. It allocates;
// to read one figure, use Count.
func (tb *Table) Read(key string) Reading { return tb.read(live(tb.clock.now()), key) }

// ReadAt returns the counts of key at t.
func (tb *Table) ReadAt(t time.Time, key string) Reading { return tb.read(tb.clock.at(t), key) }

func (tb *Table) read(m moment, key string) Reading {
	counts := make([]uint64, 0, tb.readingSize())
	r, state := tb.in.Lock(tb.in.Hash(key), key)
	t := tb.timeOfAll(m)
	if state != keytable.Found {
		return Reading{tb, t, counts[:cap(counts)]}
	}
	defer r.Unlock()
	return Reading{tb, t, tb.appendCounts(counts, r, t)}
}

func (tb *Table) readingSize() (n int) {
	for i := range tb.windows {
		n += int(tb.windows[i].size)
	}
	return n
}

// timeOfAll is timeOf for all windows at once.
func (tb *Table) timeOfAll(m moment) int64 {
	for i := range tb.windows {
		m.t = tb.windows[i].timeOf(m)
	}
	return m.t
}

func (tb *Table) appendCounts(counts []uint64, r keytable.Record, t int64) []uint64 {
	for i := range tb.windows {
		w := &tb.windows[i]
		first, partly := ring.Oldest(t, int64(w.window.Span), w.width)
		oldest := first - 1
		if !partly { // it has expired altogether
			counts = append(counts, 0)
			oldest = first
		}
		for s := oldest; s < first+w.slots; s++ {
			counts = append(counts, tb.clippedSum(w, r, s, s))
		}
	}
	return counts
}

// All returns an iterator over the keys with their counts now, in no order. Each
// key is read atomically; different keys are not. All windows end when the
// iteration begins. A key that is held from beginning to end is yielded once, a
// key that is added or removed meanwhile at most once. Keys whose windows are
// empty are omitted.
//
// The loop may use the table. It allocates for each key. The complexity is O(k)
// where k = Len(), times the slots.
func (tb *Table) All() iter.Seq2[string, Reading] {
	return func(yield func(string, Reading) bool) { tb.all(live(tb.clock.now()), yield) }
}

// AllAt is All for the counts at t.
func (tb *Table) AllAt(t time.Time) iter.Seq2[string, Reading] {
	return func(yield func(string, Reading) bool) { tb.all(tb.clock.at(t), yield) }
}

func (tb *Table) all(m moment, yield func(string, Reading) bool) {
	t := tb.timeOfAll(m)
	var keys []string
	var counts []uint64
	size := tb.readingSize()
	for group := range tb.in.Groups() {
		keys, counts = keys[:0], make([]uint64, 0, len(counts))
		for key, r := range group {
			from := len(counts)
			counts = tb.appendCounts(counts, r, t)
			if slices.Max(counts[from:]) == 0 {
				counts = counts[:from]
			} else {
				keys = append(keys, string(key))
			}
		}
		for i, key := range keys {
			if !yield(key, Reading{tb, t, counts[i*size : (i+1)*size : (i+1)*size]}) {
				return
			}
		}
	}
}

// Time returns the time of r, in UTC.
func (r Reading) Time() time.Time { return time.Unix(0, r.at).UTC() }

// Count returns the count of a span that ends at the time of r; see [Table.Count].
func (r Reading) Count(span time.Duration) (Count, error) {
	p, err := r.tb.part(span)
	if err != nil {
		return Count{}, err
	}
	counts, oldest := r.slots(p)
	first, partly := ring.Oldest(r.at, p.span, p.width)
	lo := uint64(0)
	for _, count := range counts[first-oldest:] {
		lo += min(count, ^lo)
	}
	hi := lo
	if partly {
		hi += min(counts[first-1-oldest], ^lo)
	}
	return newCount(lo, hi, r.at, p.span, p.width), nil
}

// Slots returns the slots of the shortest window that holds span, oldest first,
// the partly expired one left out and empty ones included: the start of each, in
// UTC, and its count. If span is not positive or longer than all windows, the
// iterator is empty.
func (r Reading) Slots(span time.Duration) iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) {
		part, err := r.tb.part(span)
		if err != nil {
			return
		}
		counts, oldest := r.slots(part)
		for i, count := range counts[1:] {
			if !yield(time.Unix(0, (oldest+int64(i)+1)*part.width).UTC(), count) {
				return
			}
		}
	}
}

// slots returns the counts of the window of p, and the slot that the first is of.
func (r Reading) slots(p part) (counts []uint64, oldest int64) {
	from := int64(0)
	for i := range p.index {
		from += r.tb.windows[i].size
	}
	return r.counts[from : from+p.size], ring.FloorDiv(r.at, p.width) - p.slots
}
