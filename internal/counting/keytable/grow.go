package keytable

import "math/bits"

// How a group gets memory for more keys: it removes what has expired, divides its
// bytes differently between records and keys, grows or is split, and at the budget
// it evicts. All of it REQUIRES the mutex of the group.

const (
	// fullBytes is the size at which a group is split, if that is not less than
	// fullRecords records and keys: small enough that a split is no pause, and
	// large enough that the directory stays in the cache.
	fullBytes   = headerBytes + 64<<10
	fullRecords = 64
	fullKey     = 64 // bytes of a key there

	// minRecords is what a group has memory for at least, so that no key is refused only
	// because of its hash.
	minRecords = 4

	maxPlaces = 1<<16 - 1 // of a group
	maxKeys   = 1<<16 - 1 // bytes of them in a group

	// recentKeys is how many new keys the average length of new keys is over.
	recentKeys = 32
)

// again is the State of an attempt to add a key whose group was replaced or split.
const again State = 254

// makeSpace makes memory for a key that takes need bytes beside the records. The
// State is Added if there is memory, NoMemory, or again. Unless the budget is nearly
// spent, a group in which hardly anything has expired grows at once.
func (g group) makeSpace(need int) State {
	if g.refusals > 0 {
		g.refusals--
		return NoMemory
	}
	look := g.t.nearBudget() || g.sampleExpired()
	g.freeze()
	if look {
		g.evictExpired()
	}
	g.gather()
	if g.tight(need) && (g.divide(need, 4) || g.grow(need)) {
		return again
	}
	if !look {
		g.evictExpired()
	}
	refuse := g.t.config.RefuseNew
	scarce := refuse
	for !g.fits(need) {
		if g.divide(need, 16) {
			return again
		}
		if refuse || !g.feasible(need) {
			break
		}
		evicted, asMany := g.evictLightest()
		if scarce = scarce || !asMany; evicted == 0 {
			break
		}
	}
	ok := g.fits(need)
	// To look for records to evict means to look at all of them. If little was
	// gained, the next look is after an eighth as many refusals as there are
	// records.
	g.refusals = 0
	if !ok || scarce && g.spareKeys() < int64(g.n)/16 {
		g.refusals = uint16(g.n / 8)
	}
	g.thaw()
	if !ok {
		return NoMemory
	}
	return Added
}

// tight reports whether g is nearly full. Then it is time to grow: with just enough
// memory for one key there would be a look for more with every key.
func (g group) tight(need int) bool {
	return g.n >= g.most()-g.most()/32 || need > 0 && g.tail+uint32(need) > g.keys-g.keys/8
}

// gather has the user move together what it has outside of the records, if memory
// is short.
func (g group) gather() {
	b := g.t.config.Budget
	if f := g.t.config.Gather; f != nil && b.Used() > b.Limit()-b.Limit()/8 {
		for r := range g.all() {
			f(r)
		}
	}
}

// A layout divides the bytes of a group between records and keys.
type layout struct{ size, places, keys int64 }

// A content is what a group holds: n records with keys of tail bytes. New keys take
// recent bytes for recentKeys of them.
type content struct {
	n, tail int64
	recent  int32
}

func (g group) content() content { return content{int64(g.n), int64(g.tail), g.recent} }

// bytes returns how many bytes a group of c takes at least.
func (c content) bytes(t *Table) int64 { return headerBytes + c.tail + c.n*int64(t.step)*6/5 }

// layOut returns the layout of a group of that size for c and a key that takes need:
// with as many further records as keys.
func (t *Table) layOut(size int64, c content, need int) layout {
	mean := max(int64(c.recent/recentKeys), int64(need)/4)
	place := int64(t.step)
	more := max(size-c.bytes(t), 0) / (place*6/5 + mean)
	keys := min(c.tail+max(more*mean, int64(need)), size-headerBytes, maxKeys)
	return layout{size, min((size-headerBytes-keys)/place, maxPlaces), keys}
}

// groupBytes bounds what the allocator makes of a group of that size.
func groupBytes(size int64) int64 { return headerBytes + Allocated(size-headerBytes) }

// gain returns for how many more keys there is memory in l, which is to hold c and a
// key that takes need.
func (l layout) gain(c content, need int) int64 {
	more := int64(recordsIn(l.places)) - c.n
	if l.keys < c.tail+int64(need) {
		return -1
	}
	if mean := int64(c.recent / recentKeys); mean > 0 {
		more = min(more, (l.keys-c.tail)/mean)
	}
	return more
}

// spareKeys returns for how many more keys like the last ones g has memory.
func (g group) spareKeys() int64 {
	return layout{int64(g.size), int64(g.places), int64(g.keys)}.gain(g.content(), 0)
}

// feasible reports whether g, without any records, could be divided so that a key
// fits that takes need bytes.
func (g group) feasible(need int) bool {
	l := g.t.layOut(int64(g.size), content{}, need)
	return l.gain(content{}, need) > 0
}

// divide divides the bytes of g differently between records and keys, if that makes
// memory for a key that takes need bytes and for some more keys: one part in so
// many of those that g has, since all of these are moved. It reports whether it
// did; g is replaced then.
//
// REQUIRES: all records locked.
func (g group) divide(need int, part int32) bool {
	l := g.t.layOut(int64(g.size), g.content(), need)
	if l.gain(g.content(), need) < int64(max(g.n/part, 1)) {
		return false
	}
	g.replace(l)
	return true
}

// grow replaces g by a larger group, or by two if it is of full size. It reports
// false if the budget does not allow that.
//
// From one split to the next a group grows once, so that it is at least 70 % full
// before and after: an access to a key costs less the fewer cache lines the keys
// take, and more steps would move more records. Near the budget groups grow by an
// eighth, so that at the budget all have about the same number of bytes for the same
// number of keys: what is evicted then concerns one group.
//
// REQUIRES: all records locked.
func (g group) grow(need int) bool {
	t, size := g.t, int64(g.size)
	if size >= t.full && t.maySplit(g.depth) {
		return g.split()
	}
	step := size / 2
	if t.nearBudget() {
		step = size / 8
	}
	if size < t.full {
		step = min(step, t.full-size)
	}
	l := t.layOut(groupBytes(size+max(step, 2*int64(need))), g.content(), need)
	if l.size <= size || l.gain(g.content(), need) <= 0 || !t.take(l.size) {
		return false
	}
	g.replace(l)
	return true
}

// nearBudget reports whether more than three quarters of the budget are used.
func (t *Table) nearBudget() bool {
	limit := t.config.Budget.Limit() - t.config.Reserve
	return t.config.Budget.Used() > limit-limit/4
}

// take takes bytes from the budget.
func (t *Table) take(bytes int64) bool { return t.config.Budget.Take(bytes, t.config.Reserve) }

// maySplit reports whether a group of that depth may be split: not if it is far
// deeper than others, as when a test gives all keys one hash.
func (t *Table) maySplit(depth uint16) bool {
	return int(depth) < bits.Len64(uint64(t.groups.Load()))+3 && depth < 32
}

// replace moves all that g holds to a new group, whose bytes were taken from the
// budget unless they are no more than those of g.
//
// REQUIRES: all records locked.
func (g group) replace(l layout) {
	to := g.t.newGroup(l, g.first, g.depth)
	to.base, to.recent = g.base, g.recent
	for r := range g.all() {
		to.adopt(r)
	}
	g.t.publish(g.first, g.depth, to.header)
	g.retire()
	if l.size > int64(g.size) {
		g.t.config.Budget.Give(int64(g.size))
	} else {
		g.t.config.Budget.Give(int64(g.size) - l.size)
	}
}

// split replaces g by two groups, one for each half of the range. It reports false if
// the budget does not allow that.
//
// REQUIRES: all records locked.
func (g group) split() bool {
	t, bit := g.t, uint64(1)<<(63-g.depth)
	upper := func(r Record) bool { return r.head.Load()&(bit<<headBits) != 0 }
	in := content{recent: g.recent} // the upper half
	for r := range g.all() {
		if upper(r) {
			if in.n++; r.inArena() {
				in.tail += int64(keyHead + len(r.stored()))
			}
		}
	}
	high, low := t.half(in), t.half(content{int64(g.n) - in.n, int64(g.tail) - in.tail, g.recent})
	if !t.widen(g.depth+1) || !t.take(high.size+low.size) {
		return false
	}
	to, lower := t.newGroup(high, g.first|bit, g.depth+1), t.newGroup(low, g.first, g.depth+1)
	to.base, to.recent = g.base, g.recent
	lower.base, lower.recent = g.base, g.recent
	for r := range g.all() {
		if upper(r) {
			to.adopt(r)
		} else {
			lower.adopt(r)
		}
	}
	t.publish(to.first, to.depth, to.header)
	t.publish(lower.first, lower.depth, lower.header)
	g.retire()
	t.config.Budget.Give(int64(g.size))
	return true
}

// half returns the layout of a group for c and two fifths more, or an eighth near the
// budget.
func (t *Table) half(c content) layout {
	bytes := c.bytes(t)
	more := bytes * 2 / 5
	if t.nearBudget() {
		more = bytes / 8
	}
	return t.layOut(groupBytes(bytes+more), c, 0)
}

// tidy removes what has expired, and gives memory back if g uses little of it. The
// user of g must look it up again.
func (g group) tidy() {
	g.freeze()
	g.evictExpired()
	g.gather()
	l, ok := g.smaller()
	if !ok {
		g.thaw()
		return
	}
	g.replace(l)
}

// smaller returns the layout of a group for what g holds of at most half its size, if
// that is enough.
func (g group) smaller() (l layout, ok bool) {
	t, c := g.t, g.content()
	size := groupBytes(max(c.bytes(t)*3/2, t.least))
	if size > int64(g.size)/2 {
		return layout{}, false
	}
	l = t.layOut(size, c, 0)
	return l, l.gain(c, 0) > 0
}

// rebase gives g the bases that the policy wants now.
func (g group) rebase() {
	g.freeze()
	g.evictExpired()
	from := g.base
	g.t.config.Policy.Base(&g.base)
	for r := range g.all() {
		g.t.config.Policy.Rebase(r, &from)
	}
	g.thaw()
}
