package keytable

import (
	"slices"
	"unsafe"
)

// Making room in a page: removing what has expired, growing, and at the budget
// removing what weighs least. All of it REQUIRES p.mu.

// room sees to it that there is room for a key that takes need bytes of the
// arena, and reports whether it could.
func (p *page) room(need int) bool {
	if p.first.Load() == nil {
		p.begin()
	}
	if p.fits(need) {
		return true
	}
	if p.refusals > 0 {
		p.refusals--
		return false
	}
	p.freeze()
	p.dropExpired()
	p.compact()
	p.gather()
	p.grow(need)
	scarce := p.t.config.RefuseNew
	for !p.fits(need) && !p.divide(need) && !p.t.config.RefuseNew && p.feasible(need) {
		dropped, asMany := p.dropLeast()
		if scarce = scarce || !asMany; dropped == 0 {
			break
		}
	}
	ok := p.fits(need)
	// To look for records to evict means to look at all of them. If little was
	// gained, the next look is after an eighth as many refusals as there are
	// records.
	p.refusals = 0
	if !ok || scarce && p.spareKeys() < p.n/16 {
		p.refusals = p.n / 8
	}
	p.thaw()
	return ok
}

// gather has the policy move together what it has outside of the records, if memory
// is short.
func (p *page) gather() {
	b := p.t.config.Budget
	if f := p.t.config.Gather; f != nil && b.Used() > b.Limit()-b.Limit()/8 {
		p.scan(func(r Record, _ uint) { f(r) })
	}
}

// grow takes memory from the budget for more keys or records, as p is short of.
func (p *page) grow(need int) {
	if need > 0 && p.cramped(need) {
		keys := p.tail + need
		p.resizeArena(keys+max(keys/4, minArena), p.t.config.Reserve)
	}
	if p.crowded() {
		n := p.view().n
		p.resize(n+max(n/4, minRecords), p.t.config.Reserve)
	}
}

// crowded reports whether records fill p or nearly so, cramped whether keys do.
// Then it is time to grow: just enough room would mean to look for more with
// every key.
func (p *page) crowded() bool { return p.n >= p.most-p.most/32 }

func (p *page) cramped(need int) bool { return p.tail+need > len(p.arena)-len(p.arena)/8 }

// begin gives p its first places. New has charged their bytes, which are
// not given back but by Release.
func (p *page) begin() {
	p.change()
	p.t.config.Policy.Base(&p.base)
	p.publish(p.allocate(minRecords))
	p.charge = 0
	if p.t.config.KeyWords == 0 {
		p.arena = make([]byte, minArena)
	}
	p.changed()
}

// allocate returns empty places for that many records or some more, and charges
// their bytes.
func (p *page) allocate(records uint) (words []uint64, place []uint32) {
	words = rounded[uint64](int(records * p.t.stride))
	p.charge = 8 * int64(len(words))
	places := min(len(words)/int(p.t.stride), maxRecords)
	if p.t.config.KeyWords == 0 {
		place = rounded[uint32](places)
		p.charge += 4 * int64(len(place))
	}
	return words[:places*int(p.t.stride)], place
}

// publish gives p these places.
func (p *page) publish(words []uint64, place []uint32) {
	places := uint(len(words)) / p.t.stride
	p.first.Store(unsafe.SliceData(words))
	p.setPlaces(places)
	p.place = place
	p.most = int32(places - max(places/p.t.spare, 1))
}

// resize gives p places for that many records or some more, keep bytes being left
// to others. It changes nothing if the budget does not allow it.
func (p *page) resize(records uint, keep int64) {
	if records > maxRecords {
		return
	}
	stride := p.t.stride
	bytes := 8 * int64(stride)
	reserve := atMost(int64(records) * bytes)
	if p.t.config.KeyWords == 0 {
		reserve += atMost(reserve / bytes * 4) // bounds the charge
	}
	had := p.charge
	taken, ok := p.take(reserve, had, keep)
	if !ok {
		return
	}
	p.rehash(p.allocate(records))
	p.t.config.Budget.Give(taken + had - p.charge)
}

// take takes from the budget what a move to so many bytes needs, keep bytes being
// left to others: all of them to grow, and nothing to shrink, for a full budget must
// not prevent that what is not used is given back. So while a page shrinks, its
// smaller copy is not counted.
func (p *page) take(bytes, had, keep int64) (taken int64, ok bool) {
	if bytes <= had {
		return 0, true
	}
	return bytes, p.t.config.Budget.Take(bytes, keep)
}

// rehash moves all records to new places. Those in the old places stay locked.
func (p *page) rehash(words []uint64, place []uint32) {
	old, place0, stride := p.view(), p.place, p.t.stride
	places := uint(len(words)) / stride
	for from := range old.n {
		head := old.head(from).Load()
		if head == 0 {
			continue
		}
		i := p.t.home(head, places)
		for words[i*stride] != 0 {
			if i++; i == places {
				i = 0
			}
		}
		words[i*stride] = head &^ locked // nobody looks while p changes
		copy(words[i*stride+1:(i+1)*stride], old.after(from))
		if place != nil {
			place[i] = place0[from]
		}
	}
	p.publish(words, place)
}

// resizeArena gives the keys of p that many bytes or some more, keep bytes being
// left to others. It changes nothing if the budget does not allow it.
func (p *page) resizeArena(size int, keep int64) {
	if size > maxArena {
		return
	}
	had := p.arenaCharge
	taken, ok := p.take(atMost(int64(size)), had, keep)
	if !ok {
		return
	}
	p.moveKeys(size)
	p.t.config.Budget.Give(taken + had - p.arenaCharge)
}

// moveKeys moves the keys to an arena of size bytes or some more.
func (p *page) moveKeys(size int) {
	p.compact()
	arena := rounded[byte](size)
	copy(arena, p.arena[:p.tail])
	p.arena, p.arenaCharge = arena, int64(len(arena))
}

// dropExpired removes the records that have expired.
//
// REQUIRES: all records locked.
func (p *page) dropExpired() {
	expired, had := p.t.config.Policy.Expired, p.n
	v := p.view()
	for i := range v.n {
		if head := v.head(i); head.Load() != 0 && expired(Record{p, head}) {
			p.dropAll(expired)
			p.t.expired.Add(uint64(had - p.n))
			return
		}
	}
}

// weights is what dropLeast works with.
type weights struct{ inOrder, sorted []uint64 }

// dropLeast removes the eighth of the records that weighs least, as far as they
// are not protected. It returns how many, and whether that was an eighth.
//
// REQUIRES: all records locked.
func (p *page) dropLeast() (dropped int, asMany bool) {
	w, _ := p.t.weights.Get().(*weights)
	if w == nil {
		w = new(weights)
	}
	defer p.t.weights.Put(w)
	w.inOrder = w.inOrder[:0]
	p.scan(func(r Record, _ uint) { w.inOrder = append(w.inOrder, p.t.config.Policy.Weight(r)) })
	w.sorted = append(w.sorted[:0], w.inOrder...)
	slices.Sort(w.sorted)
	eighth := (len(w.sorted) + 7) / 8
	free, _ := slices.BinarySearch(w.sorted, Protected)
	drop := min(eighth, free)
	if drop == 0 {
		return 0, false
	}
	// Of those that weigh as much as the last to go, some stay: in turn, all
	// over the page, for to empty one part of it would crowd the others.
	limit := w.sorted[drop-1]
	first, _ := slices.BinarySearch(w.sorted, limit)
	equal, _ := slices.BinarySearchFunc(w.sorted[first:], limit, func(w, limit uint64) int {
		if w <= limit {
			return -1
		}
		return 1
	})
	next, turn := 0, 0
	p.dropAll(func(Record) bool {
		weight := w.inOrder[next]
		next++
		if weight != limit {
			return weight < limit
		}
		if turn += drop - first; turn < equal {
			return false
		}
		turn -= equal
		return true
	})
	p.t.least.Add(uint64(drop))
	return drop, drop == eighth
}

// tidy removes what has expired, and returns room of which little is used.
func (p *page) tidy() {
	if p.first.Load() == nil {
		return
	}
	p.freeze()
	p.dropExpired()
	p.gather()
	if p.tail < len(p.arena)/4 && p.arenaCharge > 0 {
		p.resizeArena(max(p.tail+p.tail/2, minArena), 0)
	}
	if p.n < p.most/4 && p.view().n > 2*minRecords {
		p.resize(uint(max(p.n+p.n/2, minRecords)), 0)
	}
	p.thaw()
}

// rebase gives the page the bases that the policy wants now.
func (p *page) rebase() {
	if p.first.Load() == nil {
		return
	}
	p.freeze()
	p.dropExpired()
	from := p.base
	p.t.config.Policy.Base(&p.base)
	v := p.view()
	for i := range v.n {
		if head := v.head(i); head.Load() != 0 {
			p.t.config.Policy.Rebase(Record{p, head}, &from)
		}
	}
	p.thaw()
}
