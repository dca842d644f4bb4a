package baseline

import (
	"hash/maphash"
	"sync/atomic"
	"time"
	"unsafe"
)

// Floor64 is the least that a keyed table with a lock for each key and a record of
// one cache line costs: hash the key with a seed, fetch the record while the clock
// is read, lock it by a compare-and-swap, write, unlock. It does not know keys:
// those of one record count as one.
type Floor64 struct {
	seed    maphash.Seed
	start   time.Time
	records [][8]atomic.Uint64
}

// NewFloor64 returns a Floor64 with one record for each of n keys.
func NewFloor64(n int) *Floor64 {
	return &Floor64{maphash.MakeSeed(), time.Now(), make([][8]atomic.Uint64, n)}
}

// Add counts an event of key, and returns how many its record has counted.
func (w *Floor64) Add(key string) uint64 {
	hash := maphash.String(w.seed, key)
	record := &w.records[hash>>32*uint64(len(w.records))>>32]
	prefetch(unsafe.Pointer(record))
	now := uint64(time.Since(w.start))
	for !record[0].CompareAndSwap(0, 1) {
	}
	record[1].Store(now)
	n := record[2].Load() + 1
	record[2].Store(n)
	record[0].Store(0)
	return n
}
