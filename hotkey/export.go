package hotkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/window"
)

// The head of a chunk, see internal/counting/snapshot, is the secret of long keys, a rule's
// name, the shape of its key, and its threshold, span and whether it is exact. An entry
// is a key, whether it is a digest, how long before the chunk was written its newest
// event may have been, 0 or 1 and how long after that its hold ends, and the state of its window.

// ExportAt returns an iterator over the events and the hold of each key under each rule, in
// chunks, for a snapshot; see [Detector.ImportAt]. t is the current time, see [Detector.Now].
// Keys without an event in their span that were never hot are omitted.
//
// The chunks contain digests of long keys, and the secret with which these are made:
// protect chunks like the keys.
//
// Each chunk can be imported without the others, and has a checksum. A chunk has
// about 64 KiB, and more only for one key with tens of thousands of times. It is
// valid until the loop goes on. The loop may use d.
//
// Counting continues during the export. Each key is exported atomically; different keys
// are not.
func (d *Detector) ExportAt(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		now := keytable.Nanos(t, maxSpan)
		for i := range d.rules {
			if !d.export(i, now, yield) {
				return
			}
		}
	}
}

func (d *Detector) export(rule int, now int64, yield func([]byte) bool) bool {
	r := &d.rules[rule]
	w := snapshot.NewWriter(snapshot.Hot, now, yield)
	w.Buf = append(w.Buf, d.secret.Load()[:]...)
	w.Buf = snapshot.AppendBytes(w.Buf, r.Name)
	w.Buf = snapshot.AppendBytes(w.Buf, keyvalue.AppendShape(nil, r.Key))
	w.Buf = binary.AppendUvarint(w.Buf, r.Threshold)
	w.Buf = binary.AppendUvarint(w.Buf, uint64(r.Span))
	w.Buf = snapshot.AppendBool(w.Buf, r.Exact)
	t := d.tables[rule]
	return t.Export(w, func(key []byte, rec keytable.Record) { w.Buf = t.appendRecord(w.Buf, key, rec, now) })
}

// appendRecord appends the entry of a key that has not expired.
func (t *table) appendRecord(dst, key []byte, rec keytable.Record, now int64) []byte {
	w := rec.Words()
	window, until := w[wordWindow:], w[wordUntil]
	newest := latest(&t.window, window, t.blocks)
	if newest == math.MinInt64 || until == 0 && !t.current(w, now) {
		return dst
	}
	dst = snapshot.AppendBool(snapshot.AppendBytes(dst, key), rec.Flag())
	dst = binary.AppendVarint(dst, now-newest)
	if dst = snapshot.AppendBool(dst, until != 0); until != 0 {
		dst = binary.AppendVarint(dst, keytable.Time(until)-newest)
	}
	return t.window.AppendState(dst, window, t.blocks, newest)
}

// latest returns the latest time at which an event of a window may have been, or
// math.MinInt64 for an empty window.
func latest(m *limit.Counter, window []uint64, b *keytable.Blocks) int64 {
	newest := m.Newest(window, b)
	if newest == math.MinInt64 {
		return newest
	}
	return newest + max(m.Slot(window)-1, 0)
}

// ImportAt restores a chunk of [Detector.ExportAt], of this or another process. Use it
// on a Detector that has counted nothing. In any other, keys that are held keep
// their events. t is the current time, see [Detector.Now]. Several goroutines may import
// chunks of one export at the same time.
//
// Later edges are the same as without a restart. If the threshold
// or the span of a rule has changed, the last times of its keys count under the new
// ones. A rule is identified by its name and its key. A key of more than 256 bytes
// is restored only if no key was held before the first chunk.
//
// If the clock was set back since the export, events after t count at t, and a
// hold has the same time left as at the export. No hold is longer than its
// rule's from t on.
//
// An error means that the chunk is damaged. If its checksum is wrong, nothing was
// restored. Memory is bounded by the length of the chunk.
func (d *Detector) ImportAt(t time.Time, chunk []byte) (window.Imported, error) {
	_, r, written, err := snapshot.Open(chunk, snapshot.Hot)
	if err != nil {
		return window.Imported{}, fmt.Errorf("hotkey: %w", err)
	}
	secret := r.Next(32)
	name, shape := string(r.Bytes(r.Len())), string(r.Bytes(r.Len()))
	was := Rule{Threshold: r.Uvarint(), Span: time.Duration(r.UpTo(uint64(maxSpan))), Exact: r.UpTo(1) == 1}
	in := chunkImport{r: r, now: keytable.Nanos(t, maxSpan), written: written}
	if in.from, err = windowOf(&was); err != nil || r.Failed() || !snapshot.ValidTime(written, int64(maxSpan)) {
		return window.Imported{}, errors.New("hotkey: chunk is damaged in its head")
	}
	in.blocks = in.from.Blocks(keytable.NewBudget(unbounded))
	d.adopt((*[32]byte)(bytes.Clone(secret)))
	for i := range d.rules {
		if r := &d.rules[i]; r.Name == name && string(keyvalue.AppendShape(nil, r.Key)) == shape {
			in.to = d.tables[i]
		}
	}
	var table *keytable.Table
	if in.to != nil {
		table = in.to.Table
	}
	entries := make([]savedKey, importAhead)
	damaged := keytable.Import(table, r, entries, in.read, in.restore)
	for i := range entries {
		in.from.Clear(entries[i].window[:], in.blocks)
	}
	if damaged >= 0 {
		err = fmt.Errorf("hotkey: chunk is damaged after %d of %d bytes", damaged, len(chunk))
	}
	return in.done, err
}

// importAhead is how many keys are read before the first of them is restored.
const importAhead = 4

// adopt uses secret for the digests of long keys, if no key is held yet.
func (d *Detector) adopt(secret *[32]byte) {
	if *d.secret.Load() == *secret {
		return
	}
	for i := range d.tables {
		if d.tables[i].Len() > 0 {
			return
		}
	}
	d.secret.Store(secret)
}

// A chunkImport is the import of one chunk.
type chunkImport struct {
	to           *table // nil if d does not have the rule
	r            *snapshot.Reader
	now, written int64

	from   limit.Counter // of the rule as it was
	blocks *keytable.Blocks
	done   window.Imported
}

// A savedKey is what was read of a key.
type savedKey struct {
	digest bool
	window [1 + limit.Inline]uint64
	until  int64
	hot    bool
}

// read reads an entry after its key, and reports whether it is to be restored.
func (in *chunkImport) read(k *savedKey) bool {
	r := in.r
	in.from.Clear(k.window[:], in.blocks)
	*k = savedKey{digest: r.UpTo(1) == 1}
	newest := in.written - r.Varint()
	k.until, k.hot = newest, r.UpTo(1) == 1
	if k.hot {
		k.until += r.Varint()
	}
	if !snapshot.ValidTime(newest, int64(maxSpan)) || !snapshot.ValidTime(k.until, int64(maxSpan/2)) {
		r.Fail()
		return false
	}
	in.from.ReadState(r, k.window[:], in.blocks, newest, in.now)
	if in.from.Newest(k.window[:], in.blocks) == math.MinInt64 {
		r.Fail() // a key has an event
	}
	switch {
	case r.Failed():
		return false
	case in.to == nil:
		in.done.Unknown++
	case newest <= in.now-in.to.span && !k.hot:
		in.done.Expired++
	default:
		return true
	}
	return false
}

// restore adds a key that is not held.
func (in *chunkImport) restore(hash uint64, key string, k *savedKey) {
	rec, state := in.to.LockOrAdd(hash, key)
	switch state {
	case keytable.NoMemory:
		in.done.Refused++
		return
	case keytable.Found:
		in.done.Kept++
	default:
		in.done.Keys++
		in.fill(rec, k)
	}
	rec.Unlock()
}

// fill gives the record of a new key what was read.
func (in *chunkImport) fill(rec keytable.Record, k *savedKey) {
	t, w := in.to, rec.Words()
	if k.digest {
		rec.SetFlag()
	}
	if k.hot {
		if in.now < in.written {
			k.until -= in.written - in.now
		}
		w[wordUntil] = keytable.Stamp(min(k.until, in.now+int64(t.rule.hold())))
	}
	now := max(in.now, in.from.Newest(k.window[:], in.blocks))
	if !t.window.Carry(w[wordWindow:], t.blocks, &in.from, k.window[:], in.blocks, now) {
		for at, n := range in.from.Each(k.window[:], in.blocks, now) { // as many as there is memory for
			t.window.Charge(w[wordWindow:], t.blocks, at, n)
		}
	}
}
