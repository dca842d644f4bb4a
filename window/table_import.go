package window

import (
	"fmt"
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// Imported counts the keys and bans of an imported chunk by outcome. Packages hotkey and
// ratelimit return it too.
type Imported struct {
	Keys    int // keys that were restored
	Bans    int // bans that were restored, with past ones that count for escalation; ratelimit only
	Expired int // keys and bans that have expired
	Kept    int // existing ones, which were not changed
	Unknown int // rule is missing or has another key; hotkey and ratelimit only
	Refused int // no memory
}

// Add adds the numbers of o to i.
func (i *Imported) Add(o Imported) {
	i.Keys += o.Keys
	i.Bans += o.Bans
	i.Expired += o.Expired
	i.Kept += o.Kept
	i.Unknown += o.Unknown
	i.Refused += o.Refused
}

// ImportAt restores a chunk of [Table.ExportAt], of this or another process. t is the
// current time. Use it on an empty table. In any other, keys that are held keep their counts. Several
// goroutines may import chunks of one export at the same time.
//
// Later reads return what the exported table would have returned. A window is
// identified by its slot: a window with the same slot and another span gets the
// slots that were exported, any other stays empty. The windows move to the newest time
// that was exported, or to t if that is earlier. The budget holds as with Add;
// keys are evicted or refused; see [TableConfig.RefuseNew].
//
// If the clock was set back since the export, events after t count at t, so nothing is
// held for longer than its windows.
//
// An error means that the chunk is damaged. If its checksum is wrong, nothing was
// restored. Memory is bounded by the length of the chunk and the budget, for any
// bytes.
func (tb *Table) ImportAt(t time.Time, chunk []byte) (Imported, error) {
	now := tb.clock.nanos(t)
	_, r, _, err := snapshot.Open(chunk, snapshot.Table)
	if err != nil {
		return Imported{}, fmt.Errorf("window: %w", err)
	}
	in := &tableImport{tb: tb, r: r, now: now}
	damaged := r.Offset()
	if in.head() {
		damaged = keytable.Import(tb.in, r, make([]tableEntry, importAhead), in.read, in.restore)
	}
	if damaged >= 0 {
		err = fmt.Errorf("window: table chunk is damaged after %d of %d bytes", damaged, len(chunk))
	}
	return in.done, err
}

// importAhead is how many entries are read before the first of them is restored. Meanwhile
// the cache lines of their records are loaded.
const importAhead = 2

// A tableImport is the import of one chunk.
type tableImport struct {
	tb   *Table
	r    *snapshot.Reader
	now  int64
	done Imported

	windows []*tableWindow       // of the table that was exported
	sources [maxTableWindows]int // for each window of tb which of these, or -1
}

// A tableEntry is the entry of a key: the newest slot in each exported window, and the
// counts from that slot back.
type tableEntry struct {
	at     slots // in which the newest counts are
	stamps slots
	counts [maxTableWindows][]uint64
}

// head reads the windows, and moves the table's on. It reports whether they are valid.
func (in *tableImport) head() bool {
	r := in.r
	for range r.UpTo(maxTableWindows) {
		w := new(tableWindow)
		window := Window{Span: time.Duration(r.UpTo(math.MaxInt64)), Slot: time.Duration(r.UpTo(math.MaxInt64))}
		newest := r.Varint()
		window, err := window.checked()
		if r.Failed() || err != nil || window.Span/window.Slot > maxTableSlots {
			return false
		}
		w.init(window, 0, 0, 0)
		if newest < w.before() || newest > ring.FloorDiv(maxTime, w.width) {
			return false
		}
		w.newest.Store(newest)
		in.windows = append(in.windows, w)
	}
	if len(in.windows) == 0 || r.Failed() {
		return false
	}
	for i := range in.tb.windows {
		w := &in.tb.windows[i]
		in.sources[i] = in.source(w)
		if j := in.sources[i]; j >= 0 {
			w.reach(min(in.windows[j].newest.Load(), ring.FloorDiv(in.now, w.width)) * w.width)
		}
	}
	return true
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

// read reads an entry after its key, moves the windows on, and reports whether any of it is
// in a window.
func (in *tableImport) read(e *tableEntry) (any bool) {
	r := in.r
	for j, w := range in.windows {
		counts := e.counts[j][:0]
		held := r.UpTo(uint64(w.size))
		if held > 0 {
			// Others may have moved the windows on when the head was written.
			e.stamps[j] = w.newest.Load() - r.Varint()
			if e.stamps[j] < w.before() || e.stamps[j] > ring.FloorDiv(maxTime, w.width) {
				r.Fail()
			}
		}
		for range held {
			counts = append(counts, r.Uvarint())
		}
		e.counts[j] = counts
	}
	if r.Failed() {
		return false
	}
	if e.at, any = in.reach(e); !any {
		in.done.Expired++
	}
	return any
}

// restore counts the entry e if its key is not held.
func (in *tableImport) restore(hash uint64, key string, e *tableEntry) {
	tb := in.tb
	for ours := false; ; {
		r, state := tb.in.Add(hash, key) // most are new
		switch {
		case state == keytable.NoMemory:
			in.done.Refused++
			return
		case state == keytable.Found && !ours:
			r.Unlock()
			in.done.Kept++
			return
		case tb.based(&e.at, r.Base()):
			in.count(r, e)
			r.Unlock()
			in.done.Keys++
			return
		}
		ours = true
		r.Unlock()
		tb.in.Rebase(hash) // the record may go: it is still empty
	}
}

// reach moves the windows on to the read ones, and returns the slots of the
// newest read counts; any is false if all counts have left their windows, as of
// now.
func (in *tableImport) reach(e *tableEntry) (at slots, any bool) {
	for i := range in.tb.windows {
		w, j := &in.tb.windows[i], in.sources[i]
		at[i] = skip
		if j < 0 || len(e.counts[j]) == 0 {
			continue
		}
		now := ring.FloorDiv(in.now, w.width)
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
	var at slots
	for i := range at {
		at[i] = skip
	}
	for i := range in.tb.windows {
		w, j := &in.tb.windows[i], in.sources[i]
		if j < 0 {
			continue
		}
		last, oldest := ring.FloorDiv(in.now, w.width), w.newest.Load()-w.slots
		for k, count := range e.counts[j] {
			at[i] = min(e.stamps[j]-int64(k), last)
			if at[i] < oldest || count == 0 && k > 0 {
				continue
			}
			if r.Flag() || !w.add(r.Words(), at[i]-r.Base()[i], count) {
				in.tb.countIn(r, &at, count)
			}
		}
		at[i] = skip
	}
}
