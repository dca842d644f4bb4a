package shard

import "slices"

// Making room in a page: removing what has expired, growing, and at the budget
// removing what weighs least.

// room sees to it that there is room for a key that takes need bytes, and
// reports whether it could.
func (p *Page) room(need int) bool {
	if p.fits(need) {
		return true
	}
	if p.t.config.Refuse && p.refusals > 0 {
		p.refusals--
		return false
	}
	p.dropExpired()
	if p.cramped(need) {
		keys := p.tail + need
		p.resizeArena(keys + max(keys/4, minArena))
	}
	if p.crowded() {
		p.resize(int(p.cap) + max(int(p.cap)/4, minRecords))
	}
	for !p.fits(need) && p.n > 0 && !p.t.config.Refuse {
		p.dropLeast()
	}
	if p.fits(need) {
		return true
	}
	// Looking for expired records costs a look at all of them, so that is
	// done again when an eighth as many have been refused.
	p.refusals = p.n / 8
	return false
}

// crowded reports whether records fill p or nearly so, cramped whether keys do.
// Then it is time to grow: just enough room would mean to look for more with
// every key.
func (p *Page) crowded() bool { return p.n >= p.most-p.most/8 }

func (p *Page) cramped(need int) bool { return p.tail+need > len(p.arena)-len(p.arena)/8 }

// first gives p its first places. NewInline has charged their bytes, which are
// never given back.
func (p *Page) first() {
	p.allocate(minRecords)
	p.charge = 0
	p.arena = make([]byte, minArena)
	p.t.config.Owner.Base(&p.base)
}

// allocate gives p empty places for that many records or some more.
func (p *Page) allocate(records int) {
	p.words = rounded[uint64](records * int(p.stride))
	p.cap = uint32(min(len(p.words)/int(p.stride), maxRecords))
	p.end = int(p.cap * p.stride)
	p.most = int(p.cap - max(p.cap/4, 1))
	place := rounded[uint32](int(p.cap))
	p.place = place[:p.cap]
	p.charge = 8*int64(len(p.words)) + 4*int64(len(place))
}

// resize gives p places for that many records or some more. It changes nothing
// if the budget does not allow it.
func (p *Page) resize(records int) {
	bytes := 8 * int64(p.stride)
	words := atMost(int64(records) * bytes)
	reserve := words + atMost(words/bytes*4) // bounds the charge
	if records > maxRecords || !p.t.config.Budget.Take(reserve, p.t.config.Keep) {
		return
	}
	words0, place0, charge0 := p.words, p.place, p.charge
	p.allocate(records)
	p.t.config.Budget.Give(reserve - p.charge + charge0)
	stride := int(p.stride)
	for from, at := range place0 {
		record := words0[from*stride : (from+1)*stride]
		if record[0] == 0 {
			continue
		}
		i := p.home(record[0])
		for p.words[i] != 0 {
			i = p.next(i)
		}
		copy(p.words[i:], record)
		p.place[i/stride] = at
	}
}

// resizeArena gives the keys of p that many bytes or some more. It changes
// nothing if the budget does not allow it.
func (p *Page) resizeArena(size int) {
	reserve := atMost(int64(size))
	if !p.t.config.Budget.Take(reserve, p.t.config.Keep) {
		return
	}
	p.compact()
	arena := rounded[byte](size)
	copy(arena, p.arena[:p.tail])
	p.t.config.Budget.Give(reserve - int64(len(arena)) + p.arenaCharge)
	p.arena, p.arenaCharge = arena, int64(len(arena))
}

// dropExpired removes the records that have expired.
func (p *Page) dropExpired() {
	expired, had := p.t.config.Owner.Expired, p.n
	for i := 0; i < p.end; i += int(p.stride) {
		if p.words[i] != 0 && expired(Record{p, i}) {
			p.dropAll(expired)
			p.t.expired.Add(uint64(had - p.n))
			return
		}
	}
}

// weights is what dropLeast works with.
type weights struct{ inOrder, sorted []uint64 }

// dropLeast removes the eighth of the records that weighs least.
func (p *Page) dropLeast() {
	w, _ := p.t.weights.Get().(*weights)
	if w == nil {
		w = new(weights)
	}
	w.inOrder = w.inOrder[:0]
	p.each(func(i int) { w.inOrder = append(w.inOrder, p.t.config.Owner.Weight(Record{p, i})) })
	w.sorted = append(w.sorted[:0], w.inOrder...)
	slices.Sort(w.sorted)
	drop := (len(w.sorted) + 7) / 8
	limit := w.sorted[drop-1]
	first, _ := slices.BinarySearch(w.sorted, limit)
	equal := drop - first // of those that weigh limit, so many go
	next := 0
	p.dropAll(func(Record) bool {
		weight := w.inOrder[next]
		next++
		if weight == limit {
			equal--
			return equal >= 0
		}
		return weight < limit
	})
	p.t.least.Add(uint64(drop))
	p.t.weights.Put(w)
}

// tidy removes what has expired, and returns room of which little is used.
func (p *Page) tidy() {
	if len(p.words) == 0 {
		return
	}
	p.dropExpired()
	if p.tail < len(p.arena)/4 && p.arenaCharge > 0 {
		p.resizeArena(max(p.tail+p.tail/2, minArena))
	}
	if p.n < p.most/4 && p.cap > 2*minRecords {
		p.resize(max(p.n+p.n/2, minRecords))
	}
}
