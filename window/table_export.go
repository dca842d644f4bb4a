package window

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// The head of a chunk, see internal/counting/snapshot, is the windows: span, slot and the
// newest slot of each. An entry is a key and, for each window, how many slots its
// ring holds (0: nothing is left in it), how far the newest of them is before the
// newest in the head, and their counts from the newest on.

// ExportAt returns an iterator over the counts of each key in all windows, in chunks, for
// a snapshot; see [Table.ImportAt]. Keys whose windows are empty
// are omitted. t is the current time.
//
// Each chunk can be imported without the others, and has a checksum. Most chunks
// have 64 KiB, none more than half a mebibyte. A chunk is valid until the loop goes
// on. The loop may use the table.
//
// Adds continue during the export. Each key is exported atomically; different keys are
// not. A key that is held from beginning to end is in exactly one chunk. Other
// goroutines wait for one key at most, and new keys while the keys of a group, some
// hundreds, are listed. The complexity is O(k) where k = Len(), times the slots.
func (tb *Table) ExportAt(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var newest slots
		var counts []uint64 // of a window, for the next to use
		w := snapshot.NewWriter(snapshot.Table, tb.clock.nanos(t), yield)
		w.Buf = binary.AppendUvarint(w.Buf, uint64(len(tb.windows)))
		for i := range tb.windows {
			window := &tb.windows[i]
			newest[i] = window.newest.Load()
			w.Buf = binary.AppendUvarint(w.Buf, uint64(window.window.Span))
			w.Buf = binary.AppendUvarint(w.Buf, uint64(window.window.Slot))
			w.Buf = binary.AppendVarint(w.Buf, newest[i])
		}
		tb.in.Export(w, func(key []byte, r keytable.Record) { w.Buf, counts = tb.appendEntry(w.Buf, key, r, &newest, counts) })
	}
}

// appendEntry appends the entry of key, unless nothing is left in its windows. newest are
// the newest slots in the head, from which the windows may have moved on since.
func (tb *Table) appendEntry(dst, key []byte, r keytable.Record, newest *slots, counts []uint64) ([]byte, []uint64) {
	start, any := len(dst), false
	dst = snapshot.AppendBytes(dst, key)
	for i := range tb.windows {
		w := &tb.windows[i]
		stamp := tb.stamp(w, r)
		counts = counts[:0]
		if oldest := max(stamp, w.newest.Load()) - w.slots; oldest <= stamp {
			counts = tb.appendHeld(counts, w, r, oldest, stamp)
		}
		first := slices.IndexFunc(counts, func(count uint64) bool { return count > 0 })
		if first < 0 {
			dst = append(dst, 0)
			continue
		}
		any = true
		dst = binary.AppendUvarint(dst, uint64(len(counts)-first))
		dst = binary.AppendVarint(dst, newest[i]-stamp)
		for _, count := range slices.Backward(counts[first:]) {
			dst = binary.AppendUvarint(dst, count)
		}
	}
	if !any {
		dst = dst[:start]
	}
	return dst, counts
}

// appendHeld appends the counts of the slots first to last that r has, which are
// in its ring.
func (tb *Table) appendHeld(dst []uint64, w *tableWindow, r keytable.Record, first, last int64) []uint64 {
	words := r.Words()
	if r.Flag() {
		full := tb.full.At(uint32(words[0]))[w.fullAt+1:][:w.size]
		for s := first; s <= last; s++ {
			dst = append(dst, full[w.fullPos(s)])
		}
		return dst
	}
	p := w.pos(first - r.Base()[w.index])
	for range last - first + 1 {
		dst = append(dst, w.count(words, p))
		if p++; p == int(w.size) {
			p = 0
		}
	}
	return dst
}
