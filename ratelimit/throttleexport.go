package ratelimit

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"
	"unsafe"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/snapshot"
)

// An entry of a Throttle is a key, how long after the chunk was written its bucket
// will be empty, the count that was charged last, the rest, and whether the key was
// limited or half full.

// Export yields the buckets of all keys that are not empty at now, for
// [Throttle.Import]. It is as [Limiter.Export] in all: chunks of some 64 KiB, each
// valid until the loop goes on; decisions go on meanwhile, and a key is of one
// moment.
func (t *Throttle) Export(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		written := nanos(now)
		w := snapshot.NewWriter(snapshot.Throttle, written, yield)
		t.table.Export(w, func(key []byte, r keytable.Record) { w.Buf = appendThrottled(w.Buf, key, r, written) })
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
	dst = snapshot.AppendBytes(dst, key)
	dst = binary.AppendUvarint(dst, uint64(empty-now))
	dst = binary.AppendUvarint(dst, count)
	dst = binary.AppendUvarint(dst, w[1])
	return snapshot.AppendBool(dst, r.Flag())
}

// Import restores what a chunk of [Throttle.Export] has. From now on decisions are
// those that would have been made without a restart; of the numbers of [lately.Imported],
// Bans and Unknown stay 0. If the clock was set back since the export, each bucket
// has as long to drain as it had then. A key that is known already stays as it is.
// The error says what is wrong with the chunk; what came before that in it has
// been restored.
func (t *Throttle) Import(now time.Time, chunk []byte) (done lately.Imported, err error) {
	_, r, written, err := openChunk(chunk, snapshot.Throttle)
	if err != nil {
		return done, err
	}
	at, size := nanos(now), keytable.ReadSize(r)
	raise(&t.levels.now, at)
	for r.Len() > 0 || r.Failed() {
		key := r.Bytes(maxStored)
		left := int64(r.UpTo(uint64(2 * MaxSpan)))
		count := r.UpTo(maxThrottle)
		w := [limit.BucketWords]uint64{0, r.UpTo(max(count, 1) - 1)}
		flag := r.UpTo(1) == 1
		if r.Failed() || count == 0 {
			return done, fmt.Errorf("ratelimit: chunk is damaged after %d of %d bytes", r.Offset(), len(chunk))
		}
		empty := min(written, at) + left
		if w[0] = keytable.Stamp(empty); empty < at {
			done.Expired++
			continue
		}
		t.table.Reserve(size)
		t.restore(unsafe.String(unsafe.SliceData(key), len(key)), &w, count, flag, &done)
	}
	return done, nil
}

// restore makes w the bucket of key, if it is not known.
func (t *Throttle) restore(key string, w *[limit.BucketWords]uint64, count uint64, flag bool, done *lately.Imported) {
	r, state := t.table.LockOrAdd(t.table.Hash(key), key)
	switch state {
	case keytable.NoMemory:
		done.Refused++
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
