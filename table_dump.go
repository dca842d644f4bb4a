package lately

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// A chunk of an export is
//
//	version | when it was written | windows: span, slot, newest slot | entries
//
// and an entry a key and, for each window, how many slots its ring holds (0: it
// has nothing there), how far the newest of them is before the newest of the
// table, and their counts from the newest on. Numbers are varints, see
// keytable.DumpReader.
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
	for group := range tb.in.Groups() {
		keys = keys[:0]
		for key := range group {
			keys = keytable.AppendDumpBytes(keys, key)
		}
		for rest := keys; len(rest) > 0; {
			n, w := binary.Uvarint(rest)
			key := rest[w : w+int(n)]
			rest = rest[w+int(n):]
			if r, state := tb.in.Lock(tb.in.Hash(viewed(key)), viewed(key)); state == keytable.Found {
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
func (d *tableDump) append(dst, key []byte, r keytable.Record) []byte {
	tb, newest := d.tb, &d.newest
	start, any := len(dst), false
	dst = keytable.AppendDumpBytes(dst, key)
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
func (tb *Table) appendHeld(dst []uint64, w *tableWindow, i int, r keytable.Record, first, last int64) []uint64 {
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
