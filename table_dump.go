package lately

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/internal/shard"
)

// A chunk of an export is
//
//	version | when it was written | windows: span, slot, newest slot | entries
//
// and an entry a key and, for each window, how many slots its ring holds (0: it
// has nothing there), how far the newest of them is before the newest of the
// table, and their counts from the newest on. Numbers are varints, see
// shard.DumpReader.
const (
	tableDumpVersion = 1
	tableDumpChunk   = 64 << 10 // what a chunk aims at
)

// Export yields what tb holds of each key in all its windows, for a snapshot; see
// [Table.Import]. What has left a window is left out, and so are keys with nothing
// in any.
//
// Each chunk can be imported without the others. None has more than half a
// mebibyte, most 64 KiB. Their format has a version and no checksum. A chunk is
// valid until the loop goes on, which may use the table.
//
// Adds go on meanwhile. What is held of one key is of one moment, that of
// different keys is not. A key that is held from beginning to end is in one
// chunk, one that comes or goes meanwhile in one at most. Others wait for a key at
// most, and new keys while those of a page, some hundreds, are listed.
// The complexity is O(k) where k = Len(), times the slots.
func (tb *Table) Export() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { tb.export(tb.clock.now(), yield) }
}

// ExportAt is Export at t, the time from which Import later tells how much has
// passed.
func (tb *Table) ExportAt(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { tb.export(tb.clock.nanos(t), yield) }
}

// A tableDump is an export under way.
type tableDump struct {
	tb     *Table
	now    int64
	newest slots // of the table when the chunk was begun
	counts []uint64
}

func (tb *Table) export(now int64, yield func([]byte) bool) {
	d := &tableDump{tb: tb, now: now}
	chunk := d.appendHead(nil)
	head := len(chunk)
	var keys []byte
	for i := range tb.in.Pages() {
		keys = keys[:0]
		for key := range tb.in.Page(i) {
			keys = shard.AppendDumpBytes(keys, key)
		}
		for rest := keys; len(rest) > 0; {
			n, w := binary.Uvarint(rest)
			key := rest[w : w+int(n)]
			rest = rest[w+int(n):]
			if r, state := tb.in.Lock(tb.in.Hash(viewed(key)), viewed(key)); state == shard.Found {
				chunk = d.append(chunk, key, r)
				r.Unlock()
			}
			if len(chunk) >= tableDumpChunk {
				if !yield(chunk) {
					return
				}
				chunk = d.appendHead(chunk[:0])
				head = len(chunk)
			}
		}
	}
	if len(chunk) > head {
		yield(chunk)
	}
}

func (d *tableDump) appendHead(dst []byte) []byte {
	dst = binary.AppendVarint(append(dst, tableDumpVersion), d.now)
	dst = binary.AppendUvarint(dst, uint64(len(d.tb.windows)))
	for i := range d.tb.windows {
		w := &d.tb.windows[i]
		d.newest[i] = w.newest.Load()
		dst = binary.AppendUvarint(dst, uint64(w.window.Span))
		dst = binary.AppendUvarint(dst, uint64(w.window.Slot))
		dst = binary.AppendVarint(dst, d.newest[i])
	}
	return dst
}

// append appends the entry of key, unless there is nothing in its windows.
// The windows' newest slots may have moved on since they were read.
func (d *tableDump) append(dst, key []byte, r shard.Record) []byte {
	tb, newest := d.tb, &d.newest
	start, any := len(dst), false
	dst = shard.AppendDumpBytes(dst, key)
	for i := range tb.windows {
		w := &tb.windows[i]
		stamp := tb.stamp(w, i, r)
		oldest := max(stamp, w.newest.Load()) - w.slots
		counts := d.counts[:0]
		if oldest <= stamp {
			counts = tb.appendHeld(counts, w, i, r, oldest, stamp)
		}
		d.counts = counts
		for len(counts) > 0 && counts[0] == 0 {
			counts = counts[1:]
		}
		dst = binary.AppendUvarint(dst, uint64(len(counts)))
		if len(counts) == 0 {
			continue
		}
		any = true
		dst = binary.AppendVarint(dst, newest[i]-stamp)
		for _, count := range slices.Backward(counts) {
			dst = binary.AppendUvarint(dst, count)
		}
	}
	if !any {
		return dst[:start]
	}
	return dst
}

// appendHeld appends the counts of the slots first to last that r has, which are
// in its ring.
func (tb *Table) appendHeld(dst []uint64, w *tableWindow, i int, r shard.Record, first, last int64) []uint64 {
	words := r.Words()
	if r.Flag() {
		full := tb.full.At(uint32(words[0]))[w.fullAt+1:][:w.size]
		for s := first; s <= last; s++ {
			dst = append(dst, full[w.fullPos(s)])
		}
		return dst
	}
	p := w.pos(first - r.Base()[i])
	for range last - first + 1 {
		if w.pair() {
			dst = append(dst, words[w.at]>>(p*pairBits)&pairMask)
		} else {
			dst = append(dst, lane(words[w.at:], p+1))
		}
		if p++; p == int(w.size) {
			p = 0
		}
	}
	return dst
}

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
// [TableConfig.AtBudget] says.
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
	r := shard.NewDumpReader(chunk)
	in := &tableImport{tb: tb, r: r, now: now}
	if version := r.Byte(); !r.Failed() && version != tableDumpVersion {
		return in.done, fmt.Errorf("lately: table chunk has version %d; this program knows version %d", version, tableDumpVersion)
	}
	err := in.head()
	for err == nil && r.Len() > 0 {
		err = in.entry()
	}
	if err != nil {
		err = fmt.Errorf("lately: table chunk is damaged after %d of %d bytes: %w", len(chunk)-r.Len(), len(chunk), err)
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
	r    *shard.DumpReader
	now  int64
	done TableImport

	windows []*dumpedWindow
	sources [MaxTableWindows]*dumpedWindow // for each window of tb, or nil
}

// A dumpedWindow is a window of the table that was exported.
type dumpedWindow struct {
	tableWindow
	stamp  int64    // of the entry that is read, the newest slot
	counts []uint64 // and its counts, the newest slot first
}

// head reads what is before the entries, and moves the windows on.
func (in *tableImport) head() error {
	r := in.r
	r.Varint() // when it was written is not needed: times are absolute
	for range r.UpTo(MaxTableWindows) {
		w := new(dumpedWindow)
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
		if d := in.source(w); d != nil {
			in.sources[i] = d
			w.reach(min(d.newest.Load(), ring.Floor(in.now, w.width)) * w.width)
		}
	}
	return nil
}

// source returns which of the windows that were exported has the slots of w, the
// one with the longest span, or nil.
func (in *tableImport) source(w *tableWindow) (found *dumpedWindow) {
	for _, d := range in.windows {
		if d.width == w.width && (found == nil || d.slots > found.slots) {
			found = d
		}
	}
	return found
}

// entry reads an entry, and restores it.
func (in *tableImport) entry() error {
	r := in.r
	key := r.Bytes(MaxTableKey)
	for _, w := range in.windows {
		w.counts = w.counts[:0]
		held := r.UpTo(uint64(w.size))
		if held == 0 {
			continue
		}
		// Others may have moved the windows on when the head was written.
		w.stamp = w.newest.Load() - r.Varint()
		if w.stamp < w.before() || w.stamp > ring.Floor(maxTime, w.width) {
			return errTableEntry
		}
		for range held {
			w.counts = append(w.counts, r.Uvarint())
		}
	}
	if r.Failed() {
		return errTableEntry
	}
	in.restore(viewed(key))
	return nil
}

// restore counts what was read for key, if it is not held.
func (in *tableImport) restore(key string) {
	tb := in.tb
	at, any := in.reach()
	if !any {
		in.done.Over++
		return
	}
	hash := tb.in.Hash(key)
	for ours := false; ; {
		r, state := tb.in.LockOrAdd(hash, key)
		switch {
		case state == shard.NoRoom:
			in.done.Refused++
			return
		case state == shard.Found && !ours:
			r.Unlock()
			in.done.Kept++
			return
		case tb.based(&at, r.Base()):
			in.count(r)
			r.Unlock()
			in.done.Keys++
			return
		}
		ours = true
		r.Unlock()
		tb.in.Rebase(hash) // the record may go: it says nothing yet
	}
}

// reach moves the windows on to what was read, and returns the slots in which
// its newest counts are then; any is false if all of it has left its windows, as
// of now.
func (in *tableImport) reach() (at slots, any bool) {
	for i := range in.tb.windows {
		w, d := &in.tb.windows[i], in.sources[i]
		at[i] = skip
		if d == nil || len(d.counts) == 0 {
			continue
		}
		now := ring.Floor(in.now, w.width)
		slot, newest := w.reach(min(d.stamp, now) * w.width)
		if slot >= newest-w.slots {
			at[i], any = slot, any || slot >= now-w.slots
		}
	}
	return at, any
}

// count counts in r, which is new, what was read.
func (in *tableImport) count(r shard.Record) {
	var at slots
	for i := range at {
		at[i] = skip
	}
	for i := range in.tb.windows {
		w, d := &in.tb.windows[i], in.sources[i]
		if d == nil {
			continue
		}
		last, oldest := ring.Floor(in.now, w.width), w.newest.Load()-w.slots
		for k, count := range slices.Backward(d.counts) { // the oldest first
			slot := min(d.stamp-int64(k), last)
			if slot >= oldest && (count > 0 || k == 0) {
				at[i] = slot
				in.tb.count(r, &at, count)
			}
		}
		at[i] = skip
	}
}
