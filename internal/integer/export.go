package integer

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"
	"unsafe"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// An entry is a key, how long after the chunk was written it ends, and its number.

// Export yields the keys that have not ended at now, for [Table.Import]: chunks of some
// 64 KiB, each valid until the loop goes on. Calls go on meanwhile, and a key is of one
// moment.
func (t *Table) Export(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		written := keytable.Nanos(now, maxSpan)
		w := snapshot.NewWriter(snapshot.Integers, written, yield)
		t.table.Export(w, func(key []byte, r keytable.Record) {
			if left := keytable.Time(r.Words()[0]) - written; left > 0 {
				w.Buf = snapshot.AppendBytes(w.Buf, key)
				w.Buf = binary.AppendUvarint(w.Buf, uint64(left))
				w.Buf = binary.AppendVarint(w.Buf, int64(r.Words()[1]))
			}
		})
	}
}

// Import restores what a chunk of [Table.Export] has. If the clock was set back since the
// export, each key has as long as it had then. A key that is there already stays as it is.
// The error says what is wrong with the chunk; what came before that in it has been restored.
func (t *Table) Import(now time.Time, chunk []byte) (done lately.Imported, err error) {
	_, r, written, err := snapshot.Open(chunk, snapshot.Integers)
	if err != nil {
		return done, err
	}
	at, size := keytable.Nanos(now, maxSpan), keytable.ReadSize(r)
	from := min(written, at)
	for r.Len() > 0 || r.Failed() {
		key := r.Bytes(keytable.MaxKey)
		left, value := int64(r.UpTo(math.MaxInt64)), r.Varint()
		if r.Failed() || left > math.MaxInt64-max(from, 0) {
			return done, fmt.Errorf("chunk is damaged after %d of %d bytes", r.Offset(), len(chunk))
		}
		if from+left <= at {
			done.Expired++
			continue
		}
		t.table.Reserve(size)
		t.restore(unsafe.String(unsafe.SliceData(key), len(key)), from+left, value, &done)
	}
	return done, nil
}

// restore makes value the number of key until end, if it is not there.
func (t *Table) restore(key string, end, value int64, done *lately.Imported) {
	r, state := t.table.LockOrAdd(t.table.Hash(key), key)
	switch state {
	case keytable.NoMemory:
		done.Refused++
		return
	case keytable.Found:
		done.Kept++
	default:
		r.Words()[0], r.Words()[1] = keytable.Stamp(end), uint64(value)
		done.Keys++
	}
	r.Unlock()
}
