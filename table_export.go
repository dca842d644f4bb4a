package lately

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// The head of a chunk, see internal/snapshot, is the windows: span, slot and the
// newest slot of each. An entry is a key and, for each window, how many slots its
// ring holds (0: nothing is left in it), how far the newest of them is before the
// newest in the head, and their counts from the newest on.

// Export returns an iterator over what tb holds of each key in all its windows, in
// chunks, for a snapshot; see [Table.Import]. Keys with nothing left in any window
// are left out.
//
// Each chunk can be imported without the others, and has a checksum. Most chunks
// have 64 KiB, none more than half a mebibyte. A chunk is valid until the loop goes
// on. The loop may use the table.
//
// Adds continue during the export. The counts of one key are of one moment, those
// of different keys are not. A key that is held from beginning to end is in exactly
// one chunk. Other goroutines wait for one key at most, and new keys while those of
// a page, some hundreds, are listed. The complexity is O(k) where k = Len(), times
// the slots.
func (tb *Table) Export() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { tb.export(tb.clock.now(), yield) }
}

// ExportAt is Export at t, the time from which Import later computes how much time
// has passed.
func (tb *Table) ExportAt(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { tb.export(tb.clock.nanos(t), yield) }
}

// A tableExport is an export under way.
type tableExport struct {
	tb     *Table
	newest slots // in the head
	counts []uint64
}

func (tb *Table) export(now int64, yield func([]byte) bool) {
	x := &tableExport{tb: tb}
	w := snapshot.NewWriter(snapshot.Table, now, yield)
	w.Buf = x.appendHead(w.Buf)
	tb.in.Export(w, func(key []byte, r keytable.Record) { w.Buf = x.append(w.Buf, key, r) })
}

func (x *tableExport) appendHead(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(x.tb.windows)))
	for i := range x.tb.windows {
		w := &x.tb.windows[i]
		x.newest[i] = w.newest.Load()
		dst = binary.AppendUvarint(dst, uint64(w.window.Span))
		dst = binary.AppendUvarint(dst, uint64(w.window.Slot))
		dst = binary.AppendVarint(dst, x.newest[i])
	}
	return dst
}

// append appends the entry of key, unless nothing is left in its windows. The
// newest slots of the windows may have moved since the head was written.
func (x *tableExport) append(dst, key []byte, r keytable.Record) []byte {
	tb, newest := x.tb, &x.newest
	start, any := len(dst), false
	dst = snapshot.AppendBytes(dst, key)
	for i := range tb.windows {
		w := &tb.windows[i]
		stamp := tb.stamp(w, i, r)
		oldest := max(stamp, w.newest.Load()) - w.slots
		counts := x.counts[:0]
		if oldest <= stamp {
			counts = tb.appendHeld(counts, w, i, r, oldest, stamp)
		}
		x.counts = counts
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
