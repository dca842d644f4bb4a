package lately

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/ring"
)

// A TableImport says what became of the keys that a chunk had. Each is one of the
// numbers.
type TableImport struct {
	Keys    int // restored
	Over    int // with nothing in the windows any more, or in none with slots that tb has
	Kept    int // that tb held already, and that stay as they are
	Refused int // for which there was no room
}

// Add adds the numbers of o to i.
func (i *TableImport) Add(o TableImport) {
	i.Keys += o.Keys
	i.Over += o.Over
	i.Kept += o.Kept
	i.Refused += o.Refused
}

// Import restores what a chunk of [Table.Export] has, of this or another process.
// It is meant for an empty table; later it does no harm, for a key that is held
// already stays as it is.
//
// All that is read later is what the table that was exported would have said. A
// window is known by its slot: one with the same slot and another span gets as
// much as was held, any other nothing. The budget is kept as with Add: keys come
// in the order of the chunks, and what is forgotten or refused for them is what
// [TableConfig.RefuseNew] says.
//
// If the clock was set back since the export, what was counted after now counts
// now, so that nothing is held for longer than its windows.
//
// The error says what is wrong with the chunk; the keys before that in it have been
// restored. Memory is bounded by the chunk's length and the budget, whatever its
// bytes.
func (tb *Table) Import(chunk []byte) (TableImport, error) { return tb.importAt(tb.clock.now(), chunk) }

// ImportAt is Import at t. The windows move on to the newest time that was
// exported, or to t if that is earlier.
func (tb *Table) ImportAt(t time.Time, chunk []byte) (TableImport, error) {
	return tb.importAt(tb.clock.nanos(t), chunk)
}

func (tb *Table) importAt(now int64, chunk []byte) (TableImport, error) {
	r := keytable.NewDumpReader(chunk)
	in := &tableImport{tb: tb, r: r, now: now}
	if version := r.Byte(); !r.Failed() && version != tableDumpVersion {
		return in.done, fmt.Errorf("lately: table chunk has version %d; this program knows version %d", version, tableDumpVersion)
	}
	at, err := 0, in.head()
	for i := 0; ; i++ {
		more := err == nil && r.Len() > 0
		if more {
			at = len(chunk) - r.Len()
			err = in.entry(&in.entries[i%2])
		}
		if i > 0 {
			in.restore(&in.entries[(i-1)%2]) // its place has come to the cache meanwhile
		}
		if !more || err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("lately: table chunk is damaged after %d of %d bytes: %w", at, len(chunk), err)
	}
	return in.done, err
}

var (
	errTableWindows = errors.New("its windows are none that a table has")
	errTableEntry   = errors.New("there is no key, or a count that a window cannot hold")
)

// A tableImport is a chunk on its way into a table.
type tableImport struct {
	tb   *Table
	r    *keytable.DumpReader
	now  int64
	done TableImport

	windows []*tableWindow       // of the table that was exported
	sources [MaxTableWindows]int // for each window of tb which of these, or -1
	entries [2]tableEntry        // the one that was read last, and the one before
}

// A tableEntry is what was read of a key: in each window that was exported the
// newest slot, and the counts from that one on back.
type tableEntry struct {
	key    string
	hash   uint64
	stamps slots
	counts [MaxTableWindows][]uint64
}

// head reads what is before the entries, and moves the windows on.
func (in *tableImport) head() error {
	r := in.r
	r.Varint() // when it was written is not needed: times are absolute
	for range r.UpTo(MaxTableWindows) {
		w := new(tableWindow)
		window := Window{Span: time.Duration(r.UpTo(math.MaxInt64)), Slot: time.Duration(r.UpTo(math.MaxInt64))}
		newest := r.Varint()
		window, err := window.checked()
		if r.Failed() || err != nil || window.Span/window.Slot > MaxTableSlots {
			return errTableWindows
		}
		w.init(window, 0, 0)
		if newest < w.before() || newest > ring.Floor(maxTime, w.width) {
			return errTableWindows
		}
		w.newest.Store(newest)
		in.windows = append(in.windows, w)
	}
	if len(in.windows) == 0 {
		return errTableWindows
	}
	for i := range in.tb.windows {
		w := &in.tb.windows[i]
		in.sources[i] = in.source(w)
		if j := in.sources[i]; j >= 0 {
			w.reach(min(in.windows[j].newest.Load(), ring.Floor(in.now, w.width)) * w.width)
		}
	}
	return nil
}

// source returns which of the windows that were exported has the slots of w, the
// one with the longest span, or -1.
func (in *tableImport) source(w *tableWindow) int {
	found := -1
	for j, d := range in.windows {
		if d.width == w.width && (found < 0 || d.slots > in.windows[found].slots) {
			found = j
		}
	}
	return found
}

// entry reads an entry, and begins to fetch what it will be restored to.
func (in *tableImport) entry(e *tableEntry) error {
	r := in.r
	key := r.Bytes(MaxTableKey)
	for j, w := range in.windows {
		counts := e.counts[j][:0]
		held := r.UpTo(uint64(w.size))
		if held > 0 {
			// Others may have moved the windows on when the head was written.
			e.stamps[j] = w.newest.Load() - r.Varint()
			if e.stamps[j] < w.before() || e.stamps[j] > ring.Floor(maxTime, w.width) {
				return errTableEntry
			}
		}
		for range held {
			counts = append(counts, r.Uvarint())
		}
		e.counts[j] = counts
	}
	if r.Failed() {
		return errTableEntry
	}
	e.key = viewed(key)
	e.hash = in.tb.in.Hash(e.key)
	in.tb.in.Prefetch(e.hash)
	return nil
}

// restore counts what was read for a key, if it is not held.
func (in *tableImport) restore(e *tableEntry) {
	tb := in.tb
	at, any := in.reach(e)
	if !any {
		in.done.Over++
		return
	}
	for ours := false; ; {
		r, state := tb.in.Add(e.hash, e.key) // most are new
		switch {
		case state == keytable.NoMemory:
			in.done.Refused++
			return
		case state == keytable.Found && !ours:
			r.Unlock()
			in.done.Kept++
			return
		case tb.based(&at, r.Base()):
			in.count(r, e)
			r.Unlock()
			in.done.Keys++
			return
		}
		ours = true
		r.Unlock()
		tb.in.Rebase(e.hash) // the record may go: it says nothing yet
	}
}

// reach moves the windows on to what was read, and returns the slots in which
// its newest counts are then; any is false if all of it has left its windows, as
// of now.
func (in *tableImport) reach(e *tableEntry) (at slots, any bool) {
	for i := range in.tb.windows {
		w, j := &in.tb.windows[i], in.sources[i]
		at[i] = skip
		if j < 0 || len(e.counts[j]) == 0 {
			continue
		}
		now := ring.Floor(in.now, w.width)
		slot, newest := w.reach(min(e.stamps[j], now) * w.width)
		if slot >= newest-w.slots {
			at[i], any = slot, any || slot >= now-w.slots
		}
	}
	return at, any
}

// count counts in r, which is new, what was read: the newest slot first, so that the
// ring is moved on once.
func (in *tableImport) count(r keytable.Record, e *tableEntry) {
	for i := range in.tb.windows {
		w, j := &in.tb.windows[i], in.sources[i]
		if j < 0 {
			continue
		}
		last, oldest := ring.Floor(in.now, w.width), w.newest.Load()-w.slots
		for k, count := range e.counts[j] {
			slot := min(e.stamps[j]-int64(k), last)
			if slot < oldest || count == 0 && k > 0 {
				continue
			}
			if r.Flag() || !w.add(r.Words(), slot-r.Base()[i], count) {
				in.countLarge(r, i, slot, count)
			}
		}
	}
}

// countLarge counts n in a slot of the i-th window of r, where it may not fit.
func (in *tableImport) countLarge(r keytable.Record, i int, slot int64, n uint64) {
	var at slots
	for i := range at {
		at[i] = skip
	}
	at[i] = slot
	in.tb.count(r, &at, n)
}
