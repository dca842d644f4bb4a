package ratelimit

import (
	"math"
	"time"
)

// How bans begin and end. An entry is looked for and changed under the lock of
// its shard; to make room, another shard may have to give an entry up, so that
// is done without the lock, and all is looked at again.

// start begins the next ban of key under rule, as b has it, and returns when it
// ends. Where a ban holds already, added by hand meanwhile, the later end is
// that of both. ok is false if there is no room: no ban has begun then.
func (t *banTable) start(rule uint32, hash uint64, key []byte, b *Ban, now int64, seed uint64) (until int64, ok bool) {
	s := t.shard(hash)
	number, ok := t.open(s, 0, rule, hash, key, now)
	if !ok {
		t.refused.Add(1)
		return 0, false
	}
	defer s.mu.Unlock()
	t.begun.Add(1)
	e := t.entry(number)
	earlier := e.earlier(now)
	until = now + int64(b.jittered(earlier, seed, key))
	e.setPast(earlier+1, b.remember())
	if held := e.until(); now < held && (until < held || until == held && e.cause().manual()) {
		return held, true
	}
	s.begin(number, ruleCause(b), now, until)
	return until, true
}

// extend starts anew, at now, the ban that holds for key, if a rule began it
// and b says so; see Ban.Extend. It returns when it ends; ok is false if none
// holds.
func (t *banTable) extend(rule uint32, hash uint64, key []byte, b *Ban, now int64, seed uint64) (until int64, ok bool) {
	s := t.shard(hash)
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
	again := now + int64(b.jittered(max(e.count(), 1)-1, seed, key))
	if !b.Extend || e.cause().manual() || again <= until {
		return until, true
	}
	e[entryUntil].Store(uint64(again))
	s.settle(number)
	return again, true
}

// A heldBan is a ban as it is listed and added.
type heldBan struct {
	rule           uint32
	key            []byte
	since, until   int64
	count          uint64 // bans so far
	reason, source string // at most maxReason and maxSource bytes
}

// byRule reports whether h is a ban that a rule began.
func (h *heldBan) byRule() bool { return h.source == sourceRule }

// lastRoom returns the last of the rooms that h may take. Only a ban that is not by
// a rule may take the reserve.
func (h *heldBan) lastRoom() int {
	if h.byRule() {
		return 0
	}
	return handRoom
}

// A banChange is what became of a ban that was to be added.
type banChange uint8

const (
	banAdded  banChange = iota
	banKept             // one that holds longer was there
	banOver             // it is over at now
	banNoRoom           // there was no room
)

// add adds h at now, to be remembered for memory after its end. It never ends
// earlier what holds.
func (t *banTable) add(hash uint64, h *heldBan, memory time.Duration, now int64) banChange {
	if h.until <= now {
		return banOver
	}
	s, last := t.shard(hash), h.lastRoom()
	number, ok := t.open(s, last, h.rule, hash, h.key, now)
	if !ok {
		return banNoRoom
	}
	defer s.mu.Unlock()
	e := t.entry(number)
	e.setPast(max(e.earlier(now), h.count), memory)
	held := e.until()
	if now < held && (h.until < held || h.until == held && (h.byRule() || e.cause().manual())) {
		return banKept
	}
	cause, ok := t.causeFor(h, last)
	return s.replace(number, cause, ok, h)
}

// replace makes h the newest ban of an entry, with that cause, and reports that it
// was added. ok is false if there was no room for the cause: the entry then stays as
// it is, or goes if it was added for h.
//
// REQUIRES: s.mu.
func (s *banShard) replace(number uint32, cause banCause, ok bool, h *heldBan) banChange {
	if !ok {
		if s.t.entry(number).cause() == 0 {
			s.remove(number)
		}
		return banNoRoom
	}
	s.begin(number, cause, h.since, h.until)
	return banAdded
}

// begin puts a ban in the place of the newest of an entry.
//
// REQUIRES: s.mu.
func (s *banShard) begin(number uint32, cause banCause, since, until int64) {
	e := s.t.entry(number)
	s.t.dropText(e.cause())
	e[entryCause].Store(uint64(cause))
	e[entrySince].Store(uint64(since))
	e[entryUntil].Store(uint64(until))
	s.settle(number)
}

// causeFor returns the cause of h, its text kept in one of the rooms up to last.
func (t *banTable) causeFor(h *heldBan, last int) (cause banCause, ok bool) {
	text, source := h.reason, h.source
	if h.byRule() {
		if cause, ok := causeOf(h.reason); ok {
			return cause, true
		}
		source = ""
	} else if source == sourceManual {
		source = ""
	}
	if text += source; text == "" {
		return textCause(h.byRule(), 0, 0, 0), true
	}
	for room := range last + 1 {
		if place, ok := t.keepBlob(room, []byte(text)); ok {
			return textCause(h.byRule(), place, len(h.reason), len(source)), true
		}
	}
	return 0, false
}

// remove ends the ban of key under rule and deletes those before it. It reports
// whether one held at now.
func (t *banTable) remove(rule uint32, hash uint64, key []byte, now int64) bool {
	s := t.shard(hash)
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

// open locks s and returns the entry of key, with one added if need be in a
// room up to last. ok is false if there is no room; then s is not locked.
func (t *banTable) open(s *banShard, last int, rule uint32, hash uint64, key []byte, now int64) (number uint32, ok bool) {
	if len(key) > maxBanKey {
		return 0, false
	}
	s.mu.Lock()
	s.sweep(now)
	for room := range last + 1 {
		for tries := 0; ; tries++ {
			if number, ok = s.find(rule, hash, key); ok {
				return number, true
			}
			if number, ok = s.insert(room, rule, hash, key, now); ok {
				return number, true
			}
			if tries == dropTries {
				break
			}
			s.mu.Unlock()
			dropped := t.dropOldest(room, now)
			s.mu.Lock()
			if !dropped {
				break
			}
		}
	}
	s.mu.Unlock()
	return 0, false
}

// dropOldest removes the entry of the ban in a room that ended first, and
// reports whether one was over at now.
func (t *banTable) dropOldest(room int, now int64) bool {
	var first *banShard
	oldest := int64(math.MaxInt64)
	for i := range t.shards {
		if at := t.shards[i].heaps[room].oldest.Load(); at < oldest {
			first, oldest = &t.shards[i], at
		}
	}
	if oldest > now {
		return false
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	heap := first.heaps[room].numbers
	if len(heap) > 0 && t.entry(heap[0]).until() <= now { // else another was faster
		first.remove(heap[0])
		t.dropped.Add(1)
	}
	return true
}
