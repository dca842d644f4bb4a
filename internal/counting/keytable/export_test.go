package keytable

import "unsafe"

// Probes returns how many places of its page a search for key looks at.
func (t *Table) Probes(key string) int {
	hash := t.Hash(key)
	r, state := t.Lock(hash, key)
	if state != Found {
		return 0
	}
	defer r.Unlock()
	n := 1
	for i := r.g.homeOf(tagOf(hash)); r.g.record(i) != r; i = r.g.next(i) {
		n++
	}
	return n
}

// Words returns how many words of a record a log takes.
func (b *Blocks) Words() int { return 1 + b.inline }

// Spilled reports whether l has a block.
func (b *Blocks) Spilled(l []uint64) bool { return class(l) != 0 }

// Careless makes t change pages without locking their records.
func (t *Table) Careless() { t.careless = true }

// HeaderSizes returns the bytes of a group's header and where its bases begin.
func HeaderSizes() (size, bases uintptr) {
	return unsafe.Sizeof(header{}), unsafe.Offsetof(header{}.base)
}

// Groups returns how many groups there are, and how many entries the directory has.
func (t *Table) GroupCount() (groups, entries int) {
	return int(t.groups.Load()), len(t.directory.Load().entries)
}

// MisplacedEntries returns how many entries of the directory lead a fetch elsewhere
// than to the places of their group.
func (t *Table) MisplacedEntries() (n int) {
	d := t.directory.Load()
	for i := range d.entries {
		e := &d.entries[i]
		h, places := e.group.Load(), e.places.Load()
		if h != nil && (uintptr(places>>16) != uintptr(h.memory) || uint16(places) != h.places) {
			n++
		}
	}
	return n
}

// InUse returns how many blocks of b are in use.
func (b *Blocks) InUse() (n int) {
	for i := range b.classes {
		n += b.classes[i].Len()
	}
	return n
}

// Ever returns how many blocks b has ever handed out for the first time.
func (b *Blocks) Ever() (n int) {
	for i := range b.classes {
		for _, chunk := range b.classes[i].state {
			n += int(chunk.next)
		}
	}
	return n
}
