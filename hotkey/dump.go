package hotkey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// A chunk of an export is
//
//	version | when it was written | the secret of long keys |
//	a rule's name and the shape of its key | entries
//
// and an entry a key, how long before the chunk was written its newest event was,
// 0 or 1 and how long after that its hold ends, and its log: how many times, and
// from the newest event on how much earlier each is than the one after it.
// Numbers are varints, see keytable.DumpReader.
const (
	dumpVersion = 3

	// dumpChunk is what a chunk aims at, and dumpBatch how many keys are written
	// down under one lock, unless the chunk is full before.
	dumpChunk = 64 << 10
	dumpBatch = 256
)

// Export yields what d knows of each key under each rule, for [Detector.Import]:
// its newest time, the last T times, and until when it is hot. t is the time of
// the caller. Keys that have no event within their span and were never hot are
// left out.
//
// Long keys are exported as their digests, with the secret that these are made with;
// keep chunks as safe as the keys.
//
// Each chunk can be imported without the others. A chunk has about 64 KiB, and more
// only for one key with tens of thousands of times. Their format has a version
// and no checksum. A chunk is valid until the loop goes on, which may use d.
//
// Events go on meanwhile, and wait while 256 keys are written down. What is known
// of one key is of one moment.
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
	chunk := binary.AppendVarint([]byte{dumpVersion}, now)
	chunk = append(chunk, d.secret.Load()[:]...)
	chunk = keytable.AppendDumpBytes(chunk, r.Name)
	chunk = keytable.AppendDumpBytes(chunk, r.Key.AppendShape(nil))
	head := len(chunk)
	for s := range d.tables[rule].Shards() {
		for n, more := 0, true; more; {
			more = false
			s.Lock()
			batch := 0
			for key, rec := range s.Some(n) {
				if batch == dumpBatch || len(chunk)-head >= dumpChunk {
					more = true
					break
				}
				chunk = appendRecord(chunk, key, rec, s.Logs(0), now, int64(r.Span))
				batch++
			}
			s.Unlock()
			n += batch
			if len(chunk)-head >= dumpChunk {
				if !yield(chunk) {
					return false
				}
				chunk = chunk[:head]
			}
		}
	}
	return len(chunk) == head || yield(chunk)
}

// appendRecord appends an entry, unless the record says nothing any more.
func appendRecord(dst, key []byte, rec []uint64, logs *keytable.Logs, now, span int64) []byte {
	newest, log := keytable.Time(rec[wordNewest]), keytable.Log(rec[wordLog:])
	if newest <= now-span && rec[wordUntil] == 0 {
		return dst
	}
	dst = keytable.AppendDumpBytes(dst, key)
	dst = binary.AppendVarint(dst, now-newest)
	if rec[wordUntil] == 0 {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendVarint(append(dst, 1), keytable.Time(rec[wordUntil])-newest)
	}
	n := log.Len()
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := n - 1; i >= 0; i-- {
		t := logs.At(log, i)
		dst = binary.AppendUvarint(dst, uint64(newest-t))
		newest = t
	}
	return dst
}

// An Imported says what became of the keys that a chunk had. Each is one of the
// numbers.
type Imported struct {
	Keys    int // restored
	Over    int // of which nothing counts any more
	Kept    int // that were there already and stay as they are
	Unknown int // of a rule that there is not, or that has another key now
}

// Add adds the numbers of o to i.
func (i *Imported) Add(o Imported) {
	i.Keys += o.Keys
	i.Over += o.Over
	i.Kept += o.Kept
	i.Unknown += o.Unknown
}

// Import restores what a chunk of [Detector.Export] has, of this or another
// process. It is meant for a Detector that has seen nothing; later it does no harm,
// for a key that was seen already stays as it is. t is the time of the caller.
//
// A key of more than 256 bytes is restored if no key was known before the first
// chunk.
//
// If a rule is what it was, all edges from t on are those that would have come.
// If its threshold or span has changed, what it knew of the last times counts under
// the new ones. A rule is the same by its name and its key.
//
// If the clock was set back since the export, what was counted after t counts at
// t, and a hold has the time left that it had at the export. No hold is longer
// than its rule's from t on.
//
// The error says what is wrong with the chunk; the keys before that in it have been
// restored. Memory is bounded by the chunk's length, whatever its bytes.
func (d *Detector) Import(t time.Time, chunk []byte) (Imported, error) {
	r := keytable.NewDumpReader(chunk)
	version, written := r.Byte(), r.Varint()
	var secret [32]byte
	for i := range secret {
		secret[i] = r.Byte()
	}
	name, shape := string(r.Bytes(r.Len())), string(r.Bytes(r.Len()))
	in := dumpImport{d: d, rule: -1, r: r, now: keytable.Nanos(t, MaxSpan), written: written}
	switch {
	case !r.Failed() && version != dumpVersion:
		return in.done, fmt.Errorf("hotkey: chunk has version %d; this program knows version %d", version, dumpVersion)
	case r.Failed() || !keytable.DumpTime(written, int64(MaxSpan)):
		return in.done, errors.New("hotkey: chunk is damaged in its first bytes")
	}
	d.adopt(&secret)
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
	for i := range d.tables {
		if d.tables[i].Len() > 0 {
			return
		}
	}
	d.secret.Store(secret)
}

// A dumpImport is a chunk on its way into a Detector.
type dumpImport struct {
	d            *Detector
	rule         int // -1 if there is none
	r            *keytable.DumpReader
	now, written int64
	keys         int
	done         Imported
	times        []int64 // of an entry, the newest first
}

// entry reads an entry, and restores it.
func (in *dumpImport) entry() {
	r := in.r
	key := r.Bytes(keytable.MaxShardedKey)
	newest := in.written - r.Varint()
	until, hot := newest, r.UpTo(1) == 1
	if hot {
		until += r.Varint()
	}
	if !keytable.DumpTime(newest, int64(MaxSpan)) || !keytable.DumpTime(until, int64(MaxSpan/2)) {
		r.Fail()
	}
	in.times = in.times[:0]
	past := uint64(keytable.DumpPast)
	for n, t := r.UpTo(uint64(min(r.Len(), MaxThreshold))), newest; n > 0; n-- {
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
		in.done.Over++
	default:
		in.restore(key, min(newest, in.now), until, hot)
	}
}

func (in *dumpImport) restore(key []byte, newest, until int64, hot bool) {
	rule, table := &in.d.set.rules[in.rule], in.d.tables[in.rule]
	hash := table.Hash(key)
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	rec := s.FindOrAdd(hash, key)
	if rec[wordNewest] != 0 {
		in.done.Kept++
		return
	}
	rec[wordNewest] = keytable.Stamp(newest)
	if hot {
		if in.now < in.written {
			until -= in.written - in.now
		}
		rec[wordUntil] = keytable.Stamp(min(until, in.now+int64(rule.hold())))
	}
	logs, log := s.Logs(0), keytable.Log(rec[wordLog:])
	for i := len(in.times) - 1; i >= 0; i-- {
		logs.Add(log, in.times[i])
	}
	in.done.Keys++
}
