package keytable

// A page that the budget does not let grow has the bytes that it has. They are
// divided between records and keys as the lengths of the keys that come require:
// so what long keys have taken serves short ones when these come, and the other
// way round.

const (
	// recentKeys is how many new keys the average length of new keys is over.
	recentKeys = 32

	// leastGain says for how many more keys a page must have memory after it is
	// divided: one for so many that it has. Dividing moves all of these.
	leastGain = 16
)

// divide divides the bytes of p anew between records and keys, if that makes room
// for a key that takes need bytes of the arena and for some more like those that
// came last. It reports whether it did.
//
// REQUIRES: all records locked, no gaps in the arena.
func (p *page) divide(need int) bool {
	total := p.charge + p.arenaCharge
	size, gain := p.arenaFor(need, total)
	if gain < int64(max(p.n/leastGain, 1)) {
		return false
	}
	p.moveKeys(int(size))
	p.rehash(p.allocate(uint(p.t.placesIn(total - p.arenaCharge))))
	p.t.config.Budget.Give(total - p.charge - p.arenaCharge)
	return true
}

// arenaFor returns how many of total bytes the arena should have, and for how many
// more keys there is then memory: for as many in the arena as among the records,
// but for what the allocator rounds.
func (p *page) arenaFor(need int, total int64) (size, gain int64) {
	mean := int64(max(int(p.recent)/recentKeys, need/4))
	n, tail, spare := int64(p.n), int64(p.tail), int64(p.t.spare)
	record := p.t.placeBytes() * spare / (spare - 1)
	more := max(total-n*record-tail, 0) / (record + mean)
	ideal := tail + max(more*mean, int64(need))
	for _, s := range [2]int64{allocated(ideal), fitting(ideal)} {
		if s < tail+int64(need) {
			continue
		}
		g := p.t.recordsIn(total-s) - n
		if mean > 0 {
			g = min(g, (s-tail)/mean)
		}
		if g > gain {
			size, gain = s, g
		}
	}
	return size, gain
}

// feasible reports whether p, without any records, could be divided so that a key
// fits that takes need bytes of the arena.
func (p *page) feasible(need int) bool {
	return need <= len(p.arena) || p.t.recordsIn(p.charge+p.arenaCharge-allocated(int64(need))) > 0
}

// spareKeys returns for how many more keys like those that came last p has memory.
func (p *page) spareKeys() int32 {
	records := p.most - p.n
	if mean := p.recent / recentKeys; mean > 0 {
		return min(records, int32((len(p.arena)-p.tail)/int(mean)))
	}
	return records
}

// placeBytes returns how many bytes of a page a place takes.
func (t *Table) placeBytes() int64 {
	if t.config.KeyWords == 0 {
		return 8*int64(t.stride) + 4
	}
	return 8 * int64(t.stride)
}

// placesIn returns how many places can be allocated in that many bytes, and
// recordsIn how many records these can hold.
func (t *Table) placesIn(bytes int64) int64 {
	if t.config.KeyWords == 0 {
		bytes -= allocated(bytes / t.placeBytes() * 4)
	}
	return min(fitting(bytes)/(8*int64(t.stride)), maxRecords)
}

func (t *Table) recordsIn(bytes int64) int64 {
	places := t.placesIn(bytes)
	return places - max(places/int64(t.spare), 1)
}
