package hotkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// The head of a chunk, see internal/snapshot, is the secret of long keys, and a
// rule's name and the shape of its key. An entry is a key, how long before the
// chunk was written its newest event was, 0 or 1 and how long after that its hold
// ends, and its log: the number of times, and from the newest on how much earlier
// each is than the one after it.

// Export returns an iterator over what d knows of each key under each rule, in
// chunks, for a snapshot; see [Detector.Import]. t is the current time of the
// caller. Keys that have no event within their span and were never hot are left
// out.
//
// Of long keys the chunks hold digests, and the secret with which these are made:
// protect chunks like the keys.
//
// Each chunk can be imported without the others, and has a checksum. A chunk has
// about 64 KiB, and more only for one key with tens of thousands of times. It is
// valid until the loop goes on. The loop may use d.
//
// Events continue during the export. What is known of one key is of one moment.
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
	t := d.tables[rule]
	return t.Export(w, func(key []byte, rec keytable.Record) { w.Buf = t.appendRecord(w.Buf, key, rec.Words(), now) })
}

// appendRecord appends the entry of a key, unless nothing is left of it.
func (t *table) appendRecord(dst, key []byte, w []uint64, now int64) []byte {
	log, until := w[wordLog:], w[wordUntil]
	newest := t.log.Newest(log)
	if newest <= now-t.span && until == 0 {
		return dst
	}
	dst = snapshot.AppendBytes(dst, key)
	dst = binary.AppendVarint(dst, now-newest)
	if until == 0 {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendVarint(append(dst, 1), keytable.Time(until)-newest)
	}
	n := t.log.Len(log)
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := n - 1; i >= 0; i-- {
		at := t.log.At(log, i)
		dst = binary.AppendUvarint(dst, uint64(newest-at))
		newest = at
	}
	return dst
}

// Imported are the numbers of what a chunk held, by what became of it; see
// [lately.Imported].
type Imported = lately.Imported

// Import restores a chunk of [Detector.Export], of this or another process. Use it
// on a Detector that has counted nothing. On any other it does no harm: keys that
// are known stay as they are. t is the current time of the caller. Several
// goroutines may import chunks of one export at the same time.
//
// Later edges are those that would have come without a restart. If the threshold
// or the span of a rule has changed, the last times of its keys count under the new
// ones. A rule is identified by its name and its key. A key of more than 256 bytes
// is restored only if no key was known before the first chunk.
//
// If the clock was set back since the export, what was counted after t counts at
// t, and a hold lasts as long as it had left at the export. No hold is longer than
// its rule's from t on.
//
// The error says that the chunk is damaged. If its checksum is wrong, nothing was
// restored. Memory is bounded by the length of the chunk.
func (d *Detector) Import(t time.Time, chunk []byte) (Imported, error) {
	_, r, written, err := snapshot.Open(chunk, snapshot.Hot)
	if err != nil {
		return Imported{}, fmt.Errorf("hotkey: %w", err)
	}
	secret := r.Next(32)
	name, shape := string(r.Bytes(r.Len())), string(r.Bytes(r.Len()))
	in := chunkImport{d: d, rule: -1, r: r, now: keytable.Nanos(t, MaxSpan), written: written, size: keytable.ReadSize(r)}
	if r.Failed() || !snapshot.ValidTime(written, int64(MaxSpan)) {
		return in.done, errors.New("hotkey: chunk is damaged in its head")
	}
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

// adopt makes secret that of long keys, if no key is known yet.
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
	rule         int // -1 if there is none
	r            *snapshot.Reader
	now, written int64
	size         keytable.Size // of the table that was exported
	keys         int
	done         Imported
	times        []int64 // of an entry, the newest first
}

// entry reads an entry and restores it.
func (in *chunkImport) entry() {
	r := in.r
	key := r.Bytes(maxWhole)
	newest := in.written - r.Varint()
	until, hot := newest, r.UpTo(1) == 1
	if hot {
		until += r.Varint()
	}
	if !snapshot.ValidTime(newest, int64(MaxSpan)) || !snapshot.ValidTime(until, int64(MaxSpan/2)) {
		r.Fail()
	}
	in.times = in.times[:0]
	past := uint64(snapshot.MaxPast)
	n := r.UpTo(uint64(min(r.Len(), MaxThreshold)))
	if n == 0 {
		r.Fail() // a key has its newest time
	}
	for t := newest; n > 0; n-- {
		earlier := r.UpTo(past)
		past -= earlier
		t -= int64(earlier)
		in.times = append(in.times, min(t, in.now))
	}
	switch {
	case r.Failed():
	case in.rule < 0:
		in.done.Unknown++
	case newest <= in.now-int64(in.d.set.rules[in.rule].Span) && !hot:
		in.done.Expired++
	default:
		in.restore(viewed(key), until, hot)
	}
}

func (in *chunkImport) restore(key string, until int64, hot bool) {
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
	w := rec.Words()
	if hot {
		if in.now < in.written {
			until -= in.written - in.now
		}
		w[wordUntil] = keytable.Stamp(min(until, in.now+int64(in.d.set.rules[in.rule].hold())))
	}
	log := w[wordLog:]
	t.log.Fits(log, len(in.times))
	for _, at := range slices.Backward(in.times) {
		t.log.Add(log, at)
	}
	in.done.Keys++
}
