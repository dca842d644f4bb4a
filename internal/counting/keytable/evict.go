package keytable

import "slices"

// evictExpired removes the records that have expired.
//
// REQUIRES: all records locked.
func (g group) evictExpired() {
	had, expired := g.n, g.t.config.Policy.Expired
	for r := range g.all() {
		if expired(r) {
			g.removeIf(func(r Record) bool {
				gone := expired(r)
				if gone {
					g.evict(r)
				}
				return gone
			})
			g.t.expired.Add(uint64(had - g.n))
			return
		}
	}
}

// sampled is how many places sampleExpired looks at.
const sampled = 32

// sampleExpired reports whether one of some records has expired. They lie where their
// hashes put them, so those of the first places stand for all.
//
// REQUIRES: g.mu.
func (g group) sampleExpired() bool {
	for i := range min(uint(g.places), sampled) {
		if r := g.record(i); r.head.Load() != 0 {
			lockHead(r.head)
			expired := g.t.config.Policy.Expired(r)
			if r.Unlock(); expired {
				return true
			}
		}
	}
	return false
}

// A scratch holds what evictLightest and compact work with.
type scratch struct {
	inOrder, sorted []uint64
	keys            []byte
}

func (t *Table) borrow() *scratch {
	if s, ok := t.scratch.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

// evictLightest removes the eighth of the records with the least weights, unless they are
// protected. It returns how many, and whether that was an eighth.
//
// REQUIRES: all records locked.
func (g group) evictLightest() (evicted int, asMany bool) {
	s := g.t.borrow()
	defer g.t.scratch.Put(s)
	s.inOrder = s.inOrder[:0]
	g.scan(func(r Record) { s.inOrder = append(s.inOrder, g.t.config.Policy.Weight(r)) })
	s.sorted = append(s.sorted[:0], s.inOrder...)
	slices.Sort(s.sorted)
	eighth := (len(s.sorted) + 7) / 8
	free, _ := slices.BinarySearch(s.sorted, Protected)
	n := min(eighth, free)
	if n == 0 {
		return 0, false
	}
	// Some of those with the weight of the last to go stay: alternately, all over
	// the group, since to empty one part of it would crowd the others.
	limit := s.sorted[n-1]
	first, _ := slices.BinarySearch(s.sorted, limit)
	end, _ := slices.BinarySearch(s.sorted, limit+1) // limit is not Protected
	next, share := 0, 0
	g.removeIf(func(r Record) bool {
		weight := s.inOrder[next]
		next++
		gone := weight < limit
		if weight == limit {
			if share += n - first; share >= end-first {
				share -= end - first
				gone = true
			}
		}
		if gone {
			g.evict(r)
		}
		return gone
	})
	g.t.evicted.Add(uint64(n))
	return n, n == eighth
}

// evictGroups is how many groups Evict looks at.
const evictGroups = 16

// Evict removes, from the group of hash or from one after it, the records that have
// expired, or else an eighth of those with the least weights. It reports whether there were any
// in some groups.
func (t *Table) Evict(hash uint64) bool {
	for range evictGroups {
		g, ok := t.lockGroup(hash)
		if !ok {
			return false
		}
		had := g.n
		g.freeze()
		if g.evictExpired(); g.n == had {
			g.evictLightest()
		}
		gone := g.n < had
		if gone {
			g.refusals = 0
		}
		hash = g.first + 1<<(64-g.depth)
		g.thaw()
		if g.mu.Unlock(); gone {
			return true
		}
	}
	return false
}
