package hotkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/snapshot"
	"github.com/lately-go/lately/window"
)

// The head of a chunk, see internal/snapshot, is the secret of long keys, a rule's
// name, the shape of its key, and its threshold, span and whether it is exact. An entry
// is a key, whether it is a digest, how long before the chunk was written its newest
// event may have been, 0 or 1 and how long after that its hold ends, and the state of its window.

// Export returns an iterator over the events and the hold of each key under each rule, in
// chunks, for a snapshot; see [Detector.Import]. t is the current time of the
// caller. Keys that have no event within their span and were never hot are left
// out.
//
// The chunks contain digests of long keys, and the secret with which these are made:
// protect chunks like the keys.
//
// Each chunk can be imported without the others, and has a checksum. A chunk has
// about 64 KiB, and more only for one key with tens of thousands of times. It is
// valid until the loop goes on. The loop may use d.
//
// Counting continues during the export. Each key is exported atomically; different keys
// are not of one moment.
func (d *Detector) Export(t time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		now := keytable.Nanos(t, MaxSpan)
		for i := range d.set.rules {
			if !d.export(i, now, yield) {
				return
			}
		}
	}
}

func (d *Detector) export(rule int, now int64, yield func([]byte) bool) bool {
	r := &d.set.rules[rule]
	w := snapshot.NewWriter(snapshot.Hot, now, yield)
	w.Buf = append(w.Buf, d.secret.Load()[:]...)
	w.Buf = snapshot.AppendBytes(w.Buf, r.Name)
	w.Buf = snapshot.AppendBytes(w.Buf, r.Key.AppendShape(nil))
	w.Buf = binary.AppendUvarint(w.Buf, r.Threshold)
	w.Buf = binary.AppendUvarint(w.Buf, uint64(r.Span))
	w.Buf = snapshot.AppendBool(w.Buf, r.Exact)
	t := d.tables[rule]
	return t.Export(w, func(key []byte, rec keytable.Record) { w.Buf = t.appendRecord(w.Buf, key, rec, now) })
}

// appendRecord appends the entry of a key, unless nothing is left of it.
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

// Import restores a chunk of [Detector.Export], of this or another process. Use it
// on a Detector that has counted nothing. On any other it does no harm: keys that
// are held stay as they are. t is the current time of the caller. Several
// goroutines may import chunks of one export at the same time.
//
// Later edges are the same as without a restart. If the threshold
// or the span of a rule has changed, the last times of its keys count under the new
// ones. A rule is identified by its name and its key. A key of more than 256 bytes
// is restored only if no key was held before the first chunk.
//
// If the clock was set back since the export, what was counted after t counts at
// t, and a hold lasts as long as it had left at the export. No hold is longer than
// its rule's from t on.
//
// An error means that the chunk is damaged. If its checksum is wrong, nothing was
// restored. Memory is bounded by the length of the chunk.
func (d *Detector) Import(t time.Time, chunk []byte) (window.Imported, error) {
	_, r, written, err := snapshot.Open(chunk, snapshot.Hot)
	if err != nil {
		return window.Imported{}, fmt.Errorf("hotkey: %w", err)
	}
	secret := r.Next(32)
	name, shape := string(r.Bytes(r.Len())), string(r.Bytes(r.Len()))
	was := Rule{Threshold: r.Uvarint(), Span: time.Duration(r.UpTo(uint64(MaxSpan))), Exact: r.UpTo(1) == 1}
	in := chunkImport{d: d, rule: -1, r: r, now: keytable.Nanos(t, MaxSpan), written: written, size: keytable.ReadSize(r)}
	if in.window, err = windowOf(&was); err != nil || r.Failed() || !snapshot.ValidTime(written, int64(MaxSpan)) {
		return in.done, errors.New("hotkey: chunk is damaged in its head")
	}
	in.blocks = in.window.Blocks(keytable.NewBudget(unbounded))
	d.adopt((*[32]byte)(bytes.Clone(secret)))
	for i := range d.set.rules {
		if r := &d.set.rules[i]; r.Name == name && string(r.Key.AppendShape(nil)) == shape {
			in.rule = i
		}
	}
	for r.Len() > 0 {
		if in.entry(); r.Failed() {
			return in.done, fmt.Errorf("hotkey: chunk of %d bytes is damaged after %d keys", len(chunk), in.keys)
		}
		in.keys++
	}
	return in.done, nil
}

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
	d            *Detector
	rule         int // -1 if d does not have it
	r            *snapshot.Reader
	now, written int64
	size         keytable.Size // of the table that was exported
	keys         int
	done         window.Imported

	window limit.Counter // of the rule as it was
	blocks *keytable.Blocks
}

// entry reads an entry and restores it.
func (in *chunkImport) entry() {
	r := in.r
	key, digest := r.Bytes(maxWhole), r.UpTo(1) == 1
	newest := in.written - r.Varint()
	until, hot := newest, r.UpTo(1) == 1
	if hot {
		until += r.Varint()
	}
	if !snapshot.ValidTime(newest, int64(MaxSpan)) || !snapshot.ValidTime(until, int64(MaxSpan/2)) {
		r.Fail()
		return
	}
	var window [1 + limit.Inline]uint64
	in.window.ReadState(r, window[:], in.blocks, newest, in.now)
	defer in.window.Clear(window[:], in.blocks)
	if in.window.Newest(window[:], in.blocks) == math.MinInt64 {
		r.Fail() // a key has an event
	}
	switch {
	case r.Failed():
	case in.rule < 0:
		in.done.Unknown++
	case newest <= in.now-int64(in.d.set.rules[in.rule].Span) && !hot:
		in.done.Expired++
	default:
		in.restore(viewed(key), digest, window[:], until, hot)
	}
}

func (in *chunkImport) restore(key string, digest bool, window []uint64, until int64, hot bool) {
	t := in.d.tables[in.rule]
	t.Reserve(in.size)
	rec, state := t.LockOrAdd(t.Hash(key), key)
	if state == keytable.NoMemory {
		in.done.Refused++
		return
	}
	defer rec.Unlock()
	if state == keytable.Found {
		in.done.Kept++
		return
	}
	if digest {
		rec.SetFlag()
	}
	w := rec.Words()
	if hot {
		if in.now < in.written {
			until -= in.written - in.now
		}
		w[wordUntil] = keytable.Stamp(min(until, in.now+int64(t.rule.hold())))
	}
	now := max(in.now, in.window.Newest(window, in.blocks))
	if !t.window.Carry(w[wordWindow:], t.blocks, &in.window, window, in.blocks, now) {
		for at, n := range in.window.Each(window, in.blocks, now) { // as many as there is memory for
			t.window.Charge(w[wordWindow:], t.blocks, at, n)
		}
	}
	in.done.Keys++
}
