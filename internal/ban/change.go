package ban

import "math"

// A Result is what Add and Restore did with a ban.
type Result uint8

// The results.
const (
	Added Result = iota
	Kept         // a ban that ends later was there
	Over         // it had ended
	Full         // there was no memory
)

// Start begins the next ban of key under rule, of the length that p gives, and returns when it ends. If a
// ban that was added meanwhile ends later, it is kept. ok is false if there is no memory;
// no ban has begun then.
func (t *Table) Start(rule uint32, hash uint64, key []byte, p *Policy, now int64, seed uint64) (until int64, ok bool) {
	s, number, ok := t.open(false, rule, hash, key, 0, now)
	if !ok {
		t.refused.Add(1)
		return 0, false
	}
	defer s.mu.Unlock()
	e := s.entry(number)
	earlier := e.earlier(now)
	until = now + int64(p.jittered(earlier, seed, key))
	e.setPast(earlier+1, p.Remembered())
	if now < e.until && (until < e.until || until == e.until && !e.origin.byRule()) {
		until = e.until
	} else {
		e.origin, e.since = ruleOrigin(p), now
		e.setUntil(until)
	}
	s.place(number)
	return until, true
}

// Extend restarts the ban that holds for key at now, if a rule began it and p.Extend is
// set. It returns when the ban ends; ok is false if none holds.
func (t *Table) Extend(rule uint32, hash uint64, key []byte, p *Policy, now int64, seed uint64) (until int64, ok bool) {
	s := t.shard(uint32(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok {
		return 0, false
	}
	e := s.entry(number)
	if now >= e.until {
		return 0, false
	}
	if p.Extend && e.origin.byRule() {
		again := now + int64(p.jittered(uint64(max(e.count, 1)-1), seed, key))
		e.setUntil(max(e.until, again))
		s.place(number)
	}
	return e.until, true
}

// Add adds b at now, to be remembered for b.Memory after its end. A ban of the key that
// ends later is kept. One by hand that ends at the same time gets the reason and the source
// of b if it has neither. Only a ban that is not by a rule may use the reserve.
func (t *Table) Add(hash uint64, b *Ban, now int64) Result {
	if b.Until <= now {
		return Over
	}
	return t.Restore(hash, b, now)
}

// Restore is Add for a ban that may have ended and be remembered.
func (t *Table) Restore(hash uint64, b *Ban, now int64) Result {
	o, reason, source := b.origin()
	s, number, ok := t.open(!b.byRule(), b.Rule, hash, b.Key, len(reason)+len(source), now)
	if !ok {
		return Full
	}
	defer s.mu.Unlock()
	e := s.entry(number)
	e.setPast(max(e.earlier(now), b.Count), max(e.memory, b.Memory))
	if e.until > b.Until || e.until == b.Until && (b.byRule() || !e.origin.byRule() && !e.origin.lacks(reason+source)) {
		s.place(number)
		return Kept
	}
	if o == 0 {
		g := s.memory.Load()
		o = textOrigin(b.byRule(), g.addText([]byte(reason)), len(reason), len(source))
		g.addText([]byte(source))
	}
	e.origin, e.since = o, b.Since
	e.setUntil(b.Until)
	s.place(number)
	return Added
}

// Remove ends the ban of key under rule and deletes those before it. It reports whether
// one held at now.
func (t *Table) Remove(rule uint32, hash uint64, key []byte, now int64) bool {
	s := t.shard(uint32(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok || s.entry(number).state == unused {
		return false
	}
	holds := now < s.entry(number).until
	s.remove(number)
	return holds
}

// open returns the entry of key, with its shard locked, and space for that many bytes of
// text. If there is none, it adds one, which is in no heap. If there is no memory, it drops
// bans that have ended; ok is false if that is not enough, and nothing is locked then.
// manual is whether the reserve may be used.
func (t *Table) open(manual bool, rule uint32, hash uint64, key []byte, text int, now int64) (s *shard, number uint32, ok bool) {
	if len(key) > MaxKey {
		return nil, 0, false
	}
	s = t.shard(uint32(hash))
	for {
		s.mu.Lock()
		s.advance(now, fewEntries)
		s.expire(now, fewEntries)
		number, ok = s.find(rule, hash, key)
		entries, bytes := 0, text
		if !ok || s.entry(number).state == unused {
			entries, bytes = 1, text+keyText(key)
		}
		fits := s.fit(entries, bytes, manual)
		if fits {
			if number, ok = s.find(rule, hash, key); entries == 0 {
				return s, number, true
			}
			if reserve, taken := t.takePlace(manual); taken {
				if !ok {
					number = s.memory.Load().add(tagOf(uint32(hash), rule), rule, key)
				}
				s.entry(number).reserve = reserve
				return s, number, true
			}
		}
		dropped := !fits && s.dropSome(now)
		s.mu.Unlock()
		if fits { // but there are as many bans as there can be, in all shards
			dropped = t.dropFirst(now)
		}
		if !dropped {
			return nil, 0, false
		}
	}
}

// takePlace takes a place for a ban, and reports whether it is one of the reserve.
func (t *Table) takePlace(manual bool) (reserve, ok bool) {
	if t.shared.places.Take(1, 0) {
		return false, true
	}
	ok = manual && t.reserve.places.Take(1, 0)
	return ok, ok
}

// dropSome drops a part of the bans of a shard that have ended at now: its copy without
// them takes less memory. It reports whether there was one.
//
// REQUIRES: s.mu.
func (s *shard) dropSome(now int64) (dropped bool) {
	for range s.memory.Load().inUse()/16 + 1 {
		if !s.dropEnded(now) {
			break
		}
		dropped = true
	}
	return dropped
}

// dropFirst drops the ban that expires first of those that have ended at now, and reports
// whether there was one. Bans that ended and were not moved yet are moved, a few of each
// shard; they ended later than those that were.
func (t *Table) dropFirst(now int64) bool {
	var first *shard
	next := int64(math.MaxInt64)
	for i := range t.shards {
		s := &t.shards[i]
		if s.end.Load() <= now {
			s.mu.Lock()
			s.advance(now, fewEntries)
			s.mu.Unlock()
		}
		if at := s.gone.Load(); at < next {
			first, next = s, at
		}
	}
	if first == nil {
		return false
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	_, some := first.memory.Load().ended.First()
	return !some || first.dropEnded(now) // if there is none, others were faster
}
