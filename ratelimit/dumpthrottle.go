package ratelimit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
)

// A chunk of a Throttle has the version, when it was written, and entries: key,
// how long after that the bucket will be empty, the count that was charged last,
// the rest, and whether the key was limited or half full.
const dumpThrottle = 't'

// Export yields the buckets of all keys that are not empty at now, for
// [Throttle.Import]. It is as [Limiter.Export] in all: chunks of some 64 KiB, each
// valid until the loop goes on; decisions go on meanwhile, and a key is of one
// moment.
func (t *Throttle) Export(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		written := nanos(now)
		chunk := binary.AppendVarint([]byte{dumpThrottle, dumpVersion}, written)
		head := len(chunk)
		var keys []byte
		for group := range t.table.Groups() {
			keys = keys[:0]
			for key := range group {
				keys = keytable.AppendDumpBytes(keys, key)
			}
			for rest := keys; len(rest) > 0; {
				n, w := binary.Uvarint(rest)
				key := rest[w : w+int(n)]
				rest = rest[w+int(n):]
				text := unsafe.String(unsafe.SliceData(key), len(key)) // only read
				if r, state := t.table.Lock(t.table.Hash(text), text); state == keytable.Found {
					chunk = appendThrottled(chunk, key, r, written)
					r.Unlock()
				}
				if len(chunk) >= dumpChunk {
					if !yield(chunk) {
						return
					}
					chunk = chunk[:head]
				}
			}
		}
		if len(chunk) > head {
			yield(chunk)
		}
	}
}

// appendThrottled appends an entry, unless the bucket is empty.
func appendThrottled(dst, key []byte, r keytable.Record, now int64) []byte {
	var w [limit.BucketWords]uint64
	count := levelOf(r.Words(), &w)
	empty := keytable.Time(w[0])
	if count == 0 || empty < now {
		return dst
	}
	dst = keytable.AppendDumpBytes(dst, key)
	dst = binary.AppendUvarint(dst, uint64(empty-now))
	dst = binary.AppendUvarint(dst, count)
	dst = binary.AppendUvarint(dst, w[1])
	if r.Flag() {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Import restores what a chunk of [Throttle.Export] has. From now on decisions are
// those that would have been made without a restart; of the numbers of [Imported],
// Bans and Unknown stay 0. If the clock was set back since the export, each bucket
// has as long to drain as it had then. A key that is known already stays as it is.
// The error says what is wrong with the chunk; what came before that in it has
// been restored.
func (t *Throttle) Import(now time.Time, chunk []byte) (done Imported, err error) {
	r := keytable.NewDumpReader(chunk)
	kind, version, written := r.Byte(), r.Byte(), r.Varint()
	switch {
	case r.Failed() || kind != dumpThrottle || !keytable.DumpTime(written, int64(MaxSpan)):
		return done, errors.New("ratelimit: chunk is none of a throttle, or damaged in its first bytes")
	case version != dumpVersion:
		return done, fmt.Errorf("ratelimit: chunk has version %d; this program knows version %d", version, dumpVersion)
	}
	at := nanos(now)
	t.levels.added(at)
	for r.Len() > 0 {
		key := r.Bytes(maxStored)
		left := int64(r.UpTo(uint64(2 * MaxSpan)))
		count := r.UpTo(MaxThrottle)
		w := [limit.BucketWords]uint64{0, r.UpTo(max(count, 1) - 1)}
		flag := r.UpTo(1) == 1
		if r.Failed() || count == 0 {
			return done, fmt.Errorf("ratelimit: chunk is damaged after %d of %d bytes", len(chunk)-r.Len(), len(chunk))
		}
		empty := min(written, at) + left
		if w[0] = keytable.Stamp(empty); empty < at {
			done.Over++
			continue
		}
		t.restore(unsafe.String(unsafe.SliceData(key), len(key)), &w, count, flag, &done)
	}
	return done, nil
}

// restore makes w the bucket of key, if it is not known.
func (t *Throttle) restore(key string, w *[limit.BucketWords]uint64, count uint64, flag bool, done *Imported) {
	r, state := t.table.LockOrAdd(t.table.Hash(key), key)
	switch state {
	case keytable.NoMemory:
		done.NoRoom++
		return
	case keytable.Found:
		done.Kept++
	default:
		setLevel(r.Words(), w, count)
		if flag {
			r.SetFlag()
		}
		done.Keys++
	}
	r.Unlock()
}
