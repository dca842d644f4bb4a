package keytable

import "github.com/lately-go/lately/internal/counting/snapshot"

// Import reads the entries that Export has written, from the Size on. read reads an entry
// into e, after its key, and reports whether it is to be restored. restore is called with
// it when len(entries) others have been read: meanwhile the cache lines of its record are
// loaded. If t is nil, nothing is restored.
//
// If the chunk is damaged, Import returns where the damaged entry begins, and what came
// before has been restored; else it returns -1.
func Import[E any](t *Table, r *snapshot.Reader, entries []E, read func(e *E) bool, restore func(hash uint64, key string, e *E)) (damaged int) {
	at := r.Offset()
	size := ReadSize(r)
	queue := make([]struct {
		hash  uint64
		key   string
		waits bool
	}, len(entries))
	next := func(i int) {
		if q := &queue[i]; q.waits {
			q.waits = false
			t.Reserve(size)
			restore(q.hash, q.key, &entries[i])
		}
	}
	for n := 0; r.Len() > 0; n++ {
		i := n % len(entries)
		next(i)
		at = r.Offset()
		key := Text(r.Bytes(MaxKey)) // only read
		if keep := read(&entries[i]); keep && t != nil && !r.Failed() {
			q := &queue[i]
			q.hash, q.key, q.waits = t.Hash(key), key, true
			t.Prefetch(q.hash)
		}
	}
	for i := range entries {
		next(i)
	}
	if r.Failed() {
		return at
	}
	return -1
}
