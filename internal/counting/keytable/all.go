package keytable

import (
	"encoding/binary"
	"iter"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/snapshot"
)

// All yields each key with its record, in no order. Each record is locked, and its
// group too, while the loop's body runs, which must not use the table and must
// copy of the key what it keeps. What comes or goes meanwhile is yielded once or
// not at all.
func (t *Table) All() iter.Seq2[[]byte, Record] {
	return func(yield func([]byte, Record) bool) {
		for g := range t.lockedGroups() {
			if !g.each(yield) {
				return
			}
		}
	}
}

// Groups yields the parts of All that are in one group: a caller that must use the
// table between keys iterates over a part, and then uses the table. Each part is to
// be iterated over once, before the next.
func (t *Table) Groups() iter.Seq[iter.Seq2[[]byte, Record]] {
	return func(yield func(iter.Seq2[[]byte, Record]) bool) {
		for at, more := uint64(0), true; more; {
			var next uint64
			part := func(yield func([]byte, Record) bool) {
				next, _ = t.withGroup(at, func(g group) bool { return g.each(yield) })
			}
			more = yield(part) && next != 0
			at = next
		}
	}
}

// each yields each key and record of g.
func (g group) each(yield func([]byte, Record) bool) bool {
	for i := range uint(g.places) {
		if r := g.record(i); r.head.Load() != 0 && !r.withLock(yield) {
			return false
		}
	}
	return true
}

func (r Record) withLock(yield func([]byte, Record) bool) bool {
	lockHead(r.head)
	defer r.Unlock()
	return yield(r.key(), r)
}

// Drain empties the group of hash for good: f is called for each of its records,
// with all of them locked, and may look into them and use other tables that come
// later in the order. All that follows on a key of that group has the State Moved.
// The policy is not told of a Drop. A group is drained once; later calls do
// nothing.
func (t *Table) Drain(hash uint64, f func(key []byte, r Record)) {
	if g, ok := t.lockGroup(hash); ok {
		defer g.mu.Unlock()
		g.drain(f)
	}
}

// DrainAll is Drain for all groups.
func (t *Table) DrainAll(f func(key []byte, r Record)) {
	for g := range t.lockedGroups() {
		g.drain(f)
	}
}

func (g group) drain(f func(key []byte, r Record)) {
	g.freeze()
	for r := range g.all() {
		f(r.key(), r)
	}
	g.t.n.Add(^uint64(g.n - 1))
	g.t.publish(g.first, g.depth, nil)
	g.retire()
	g.t.config.Budget.Give(int64(g.size))
}

// Release drains all groups and gives all memory back to the budget. The table is
// of no use afterwards: it is empty, and all keys have moved.
func (t *Table) Release() {
	t.DrainAll(func([]byte, Record) {})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.released {
		t.config.Budget.Give(directoryBytes(len(t.directory.Load().entries)))
		t.released = true
	}
}

// Export ends the head of w with the Size of t, calls entry for each key of t, and
// flushes w when it is full and at the end. entry appends the key's entry to w.Buf, or
// nothing.
//
// The keys of a group are listed under its lock; each record is then locked for
// itself while entry runs. So a new key waits while a group is listed, any other
// access for one entry, and none while a chunk is written. A key that is held from
// beginning to end is exported once. Export reports whether more chunks are wanted.
func (t *Table) Export(w *snapshot.Writer, entry func(key []byte, r Record)) (more bool) {
	w.Buf = t.size().append(w.Buf)
	w.EndHead()
	var keys []byte
	for group := range t.Groups() {
		keys = keys[:0]
		for key := range group {
			keys = snapshot.AppendBytes(keys, key)
		}
		for rest := keys; len(rest) > 0; {
			n, at := binary.Uvarint(rest)
			key := rest[at : at+int(n)]
			rest = rest[at+int(n):]
			text := unsafe.String(unsafe.SliceData(key), len(key)) // only read
			if r, state := t.Lock(t.Hash(text), text); state == Found {
				entry(key, r)
				r.Unlock()
			}
			if w.Full() && !w.Flush() {
				return false
			}
		}
	}
	return w.Flush()
}
