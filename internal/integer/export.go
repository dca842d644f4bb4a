package integer

import (
	"encoding/binary"
	"iter"
	"math"
	"time"

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
	at := keytable.Nanos(now, maxSpan)
	from := min(written, at)
	var end, value int64
	done.Keys, done.Expired, done.Kept, done.Refused, err = t.table.Import(r, func() bool {
		end, value = from+int64(r.UpTo(uint64(math.MaxInt64-max(from, 0)))), r.Varint()
		return end <= at
	}, func(r keytable.Record) { r.Words()[0], r.Words()[1] = keytable.Stamp(end), uint64(value) })
	return done, err
}
