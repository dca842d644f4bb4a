package keytable

import (
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A directory maps the upper bits of a hash to the group that holds its record
// (extendible hashing, R. Fagin and others, 1979). It doubles when a group is to
// be split for which it has one entry only. A directory that was replaced is not
// updated any more: a search that it misleads finds locked records or none, and
// starts again.
type directory struct {
	shift   uint    // 64 - log2(len(entries))
	entries []entry // written with Table.mu locked
}

// An entry names a group. The group's places stand beside it so that the record of a
// hash is fetched without a wait for the header of its group.
type entry struct {
	group  atomic.Pointer[header] // nil after its range was drained
	places atomic.Uint64          // address of the first place << 16 | number of places; a hint only, for it is not read with group in one step
}

func (e *entry) set(h *header) {
	if h != nil {
		e.places.Store(uint64(uintptr(h.memory))<<16 | uint64(h.places))
	}
	e.group.Store(h)
}

// minGroups is the number of groups of an empty table: 2^headBits, see the head
// of a record.
const minGroups = 1 << headBits

func newDirectory(entries int) *directory {
	return &directory{shift: uint(64 - bits.Len(uint(entries-1))), entries: make([]entry, entries)}
}

func directoryBytes(entries int) int64 {
	return Allocated(int64(entries) * int64(unsafe.Sizeof(entry{})))
}

// groupOf returns the group for hash, or nil if its range was drained.
func (t *Table) groupOf(hash uint64) *header {
	return t.entryOf(hash).group.Load()
}

func (t *Table) entryOf(hash uint64) *entry {
	d := t.directory.Load()
	return &d.entries[hash>>(d.shift&63)]
}

// publish makes h, or nobody, the group for all hashes that begin with that many
// bits of first.
func (t *Table) publish(first uint64, depth uint16, h *header) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.directory.Load()
	from := first >> d.shift
	for i := range uint64(1) << (64 - uint(depth) - d.shift) {
		d.entries[from+i].set(h)
	}
}

// widen makes the directory large enough for groups of that depth. It reports
// false if the budget does not allow it.
func (t *Table) widen(depth uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := t.directory.Load(); 64-d.shift < uint(depth); d = t.directory.Load() {
		n := len(d.entries)
		if !t.config.Budget.Take(directoryBytes(2*n), t.config.Reserve) {
			return false
		}
		wide := newDirectory(2 * n)
		for i := range d.entries {
			h := d.entries[i].group.Load()
			wide.entries[2*i].set(h)
			wide.entries[2*i+1].set(h)
		}
		t.directory.Store(wide)
		t.config.Budget.Give(directoryBytes(n))
	}
	return true
}

// lockGroup locks the group for hash. It reports false if its range was drained.
func (t *Table) lockGroup(hash uint64) (g group, ok bool) {
	for {
		h := t.groupOf(hash)
		if h == nil {
			return group{}, false
		}
		h.mu.Lock()
		if h.state.Load()&retired == 0 && (hash^h.first)>>(64-h.depth) == 0 {
			return group{t, h}, true
		}
		h.mu.Unlock()
	}
}

// lockedGroups yields the groups in the order of their hashes, each locked while the
// loop's body runs. A group that is split meanwhile is seen in full: groups are never
// merged, so the hash at which one ends begins another.
func (t *Table) lockedGroups() iter.Seq[group] {
	return func(yield func(group) bool) {
		for at, more := uint64(0), true; more; {
			at, more = t.withGroup(at, yield)
			more = more && at != 0
		}
	}
}

// withGroup calls f for the group whose first hash is at, and returns the first
// hash of the next one, 0 after the last.
func (t *Table) withGroup(at uint64, f func(g group) bool) (next uint64, more bool) {
	g, ok := t.lockGroup(at)
	if !ok {
		shift := t.directory.Load().shift
		return (at>>shift + 1) << shift, true
	}
	defer g.mu.Unlock()
	next = g.first + 1<<(64-g.depth)
	return next, f(g)
}
