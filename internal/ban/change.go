package ban

import (
	"math"
	"time"
)

// A Ban is one ban of a Table.
type Ban struct {
	Rule         uint32
	Key          []byte
	Since, Until int64  // in nanoseconds since 1970
	Count        uint64 // bans so far
	Reason       string
	Source       string // SourceRule if a rule began it
}

func (b *Ban) byRule() bool { return b.Source == SourceRule }

// A Result is what Add and Restore did with a ban.
type Result uint8

// The results.
const (
	Added Result = iota
	Kept         // a ban that ends later was there
	Over         // it had ended
	Full         // there was no memory
)

// Start begins the next ban of key under rule, as p has it, and returns when it ends. If a
// ban that was added meanwhile ends later, it is kept. ok is false if there is no memory;
// no ban has begun then.
func (t *Table) Start(rule uint32, hash uint64, key []byte, p *Policy, now int64, seed uint64) (until int64, ok bool) {
	s, number, ok := t.open(false, rule, hash, key, now)
	if !ok {
		t.refused.Add(1)
		return 0, false
	}
	defer s.mu.Unlock()
	t.begun.Add(1)
	e := t.entry(number)
	earlier, held := e.earlier(now), e.until()
	until = now + int64(p.jittered(earlier, seed, key))
	e.setPast(earlier+1, p.Remembered())
	if now < held && (until < held || until == held && e.origin().manual()) {
		s.place(number)
		return held, true
	}
	s.begin(number, ruleOrigin(p), now, until)
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
	e := t.entry(number)
	until = e.until()
	if now >= until {
		return 0, false
	}
	again := now + int64(p.jittered(max(e.count(), 1)-1, seed, key))
	if !p.Extend || e.origin().manual() || again <= until {
		return until, true
	}
	e[entryUntil].Store(uint64(again))
	s.place(number)
	return again, true
}

// Add adds b at now, to be remembered for memory after its end. A ban of the key that ends
// later is kept. Only a ban that is not by a rule may use the reserve.
func (t *Table) Add(hash uint64, b *Ban, memory time.Duration, now int64) Result {
	if b.Until <= now {
		return Over
	}
	s, number, ok := t.open(!b.byRule(), b.Rule, hash, b.Key, now)
	if !ok {
		return Full
	}
	defer s.mu.Unlock()
	e := t.entry(number)
	held := e.until()
	e.setPast(max(e.earlier(now), b.Count), memory)
	if now < held && (b.Until < held || b.Until == held && (b.byRule() || e.origin().manual())) {
		s.place(number)
		return Kept
	}
	return s.replace(number, b, 0)
}

// Restore adds a ban as it was saved, at now. A ban of the key that ends no earlier is
// kept, with the larger of both counts.
func (t *Table) Restore(hash uint64, b *Saved, now int64) Result {
	s, number, ok := t.open(!b.byRule(), b.Rule, hash, b.Key, now)
	if !ok {
		return Full
	}
	defer s.mu.Unlock()
	e := t.entry(number)
	if e.origin() == 0 {
		e.setPast(b.Count, b.Memory)
	} else {
		e.setPast(max(e.earlier(now), b.Count), max(e.memory(), b.Memory))
		if e.until() >= b.Until {
			s.place(number)
			return Kept
		}
	}
	return s.replace(number, &b.Ban, b.counted)
}

// Remove ends the ban of key under rule and deletes those before it. It reports whether
// one held at now.
func (t *Table) Remove(rule uint32, hash uint64, key []byte, now int64) bool {
	s := t.shard(uint32(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok {
		return false
	}
	held := now < t.entry(number).until()
	s.remove(number)
	return held
}

// replace makes b the newest ban of an entry. o is its origin if that has no text, or 0.
// If there is no memory for the text, the entry stays as it is, or is removed if it is new.
//
// REQUIRES: s.mu.
func (s *shard) replace(number uint32, b *Ban, o origin) Result {
	if o == 0 {
		var ok bool
		if o, ok = s.t.originOf(b); !ok {
			if s.t.entry(number).origin() == 0 {
				s.remove(number)
			} else {
				s.place(number)
			}
			return Full
		}
	}
	s.begin(number, o, b.Since, b.Until)
	return Added
}

// begin replaces the newest ban of an entry.
//
// REQUIRES: s.mu.
func (s *shard) begin(number uint32, o origin, since, until int64) {
	e := s.t.entry(number)
	s.t.releaseText(e.origin())
	e[entryOrigin].Store(uint64(o))
	e[entrySince].Store(uint64(since))
	e[entryUntil].Store(uint64(until))
	s.place(number)
}

// originOf returns the origin of b, and stores its text. ok is false if there is no memory
// for that.
func (t *Table) originOf(b *Ban) (o origin, ok bool) {
	text, source := b.Reason, b.Source
	if b.byRule() {
		if o, ok := parseOrigin(b.Reason); ok {
			return o, true
		}
		source = ""
	} else if source == SourceManual {
		source = ""
	}
	if text += source; text == "" {
		return textOrigin(b.byRule(), 0, 0, 0), true
	}
	place, ok := t.texts.add([]byte(text), !b.byRule())
	return textOrigin(b.byRule(), place, len(b.Reason), len(source)), ok
}

// dropTries is how many bans that ended are dropped at most to make a place for one. More
// than one is needed if others take the place, or if it does not fit the key.
const dropTries = 8

// open returns the entry of key, with its shard locked, and adds one if there is none. If
// there is no memory, it drops bans that have ended. ok is false if that is not enough;
// nothing is locked then. manual is whether the reserve may be used.
//
// Another shard may have to drop an entry, which is done without the lock; so all is read
// again after that.
func (t *Table) open(manual bool, rule uint32, hash uint64, key []byte, now int64) (s *shard, number uint32, ok bool) {
	s = t.shard(uint32(hash))
	for tries := 0; tries <= dropTries; tries++ {
		s.mu.Lock()
		s.advance(now, fewEntries)
		s.expire(now, fewEntries)
		if number, ok = s.find(rule, hash, key); ok {
			return s, number, true
		}
		if number, ok = s.insert(manual, rule, hash, key, now); ok {
			return s, number, true
		}
		s.mu.Unlock()
		for reserve, dropped := true, false; reserve && !manual || !dropped; {
			if reserve, dropped = t.dropFirst(now); !dropped { // one of the reserve is of no use to a rule
				return nil, 0, false
			}
		}
	}
	return nil, 0, false
}

// dropFirst removes the entry that expires first of those whose bans have ended at now. It
// reports whether it was one of the reserve, and whether there was one. Bans that ended and
// were not moved yet are moved, a few of each shard; they ended later than those that were.
func (t *Table) dropFirst(now int64) (reserve, dropped bool) {
	var first *shard
	next := int64(math.MaxInt64)
	for i := range t.shards {
		s := &t.shards[i]
		if s.held.next.Load() <= now {
			s.mu.Lock()
			s.advance(now, fewEntries)
			s.mu.Unlock()
		}
		if at := s.ended.next.Load(); at < next {
			first, next = s, at
		}
	}
	if first == nil {
		return false, false
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	if first.ended.n == 0 {
		return false, true // others were faster
	}
	number := *first.ended.at(0)
	if e := first.t.entry(number); e.until() > now {
		return false, false // the time went back since it was moved
	} else if e.expires() >= now {
		t.dropped.Add(1)
	}
	return first.remove(number), true
}
