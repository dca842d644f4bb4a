package ratelimit

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/snapshot"
)

// A chunk of bans has the rules of all of them, and entries: the rule's place
// among these, the key, how long after the chunk was written the newest ban
// ends, how long it is, how many there were, how long they are remembered in
// milliseconds, and the cause: in one number what a rule counted, see banCause,
// or 0 or 1 for a ban that is not, or is, by a rule, with reason and source.

// banBatch is how many entries are written down under one lock of their shard.
const banBatch = 128

// bans exports all entries of the ban table, shard by shard. A shard is locked
// while its entries are listed, and then while some of them are written down. The
// rules of the entries are those of this moment.
func (x *dumper) bans() bool {
	t := x.m.bans
	rules := x.banHead()
	var refs []banRef
	for i := range t.shards {
		refs = t.shards[i].refs(refs[:0])
		for batch := range slices.Chunk(refs, banBatch) {
			x.batch(&t.shards[i], batch, rules)
			if x.Full() && !x.flush() {
				return false
			}
		}
	}
	return x.flush()
}

// banHead begins a chunk of bans, and returns the places of the rules in it by
// their numbers.
func (x *dumper) banHead() map[uint32]uint64 {
	rs := x.m.rules.Load()
	x.Begin(snapshot.Bans, x.now)
	x.Buf = binary.AppendUvarint(x.Buf, uint64(len(rs.rules)))
	places := make(map[uint32]uint64)
	for i, mr := range rs.rules {
		places[mr.id] = uint64(i)
		x.Buf = appendRule(x.Buf, mr.Rule)
	}
	x.EndHead()
	return places
}

// refs appends where the entries of s are.
func (s *banShard) refs(refs []banRef) []banRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range s.all() {
		refs = append(refs, banRef{ident: s.t.entry(number)[entryIdent].Load(), number: number})
	}
	return refs
}

// batch appends those of the entries that are still there, and that are of a rule
// that there is.
func (x *dumper) batch(s *banShard, refs []banRef, rules map[uint32]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		e := s.t.entry(ref.number)
		if place, ok := rules[e.rule()]; ok && e[entryIdent].Load() == ref.ident {
			x.Buf = binary.AppendUvarint(x.Buf, place)
			x.ban(s.t, e)
		}
	}
}

// ban appends an entry.
//
// REQUIRES: the lock of its shard.
func (x *dumper) ban(t *banTable, e *banEntry) {
	x.keys = t.keyOf(x.keys[:0], e)
	b := snapshot.AppendBytes(x.Buf, x.keys)
	b = binary.AppendVarint(b, e.until()-x.now)
	b = binary.AppendUvarint(b, uint64(e.until()-e.since()))
	b = binary.AppendUvarint(b, e.count())
	b = binary.AppendUvarint(b, uint64(e.memory()/time.Millisecond))
	switch cause := e.cause(); {
	case cause&causeCount != 0:
		b = binary.AppendUvarint(b, uint64(cause))
	default:
		place, reason, source := cause.text()
		b = append(b, byte(cause&causeRule>>61))
		x.keys = x.keys[:0]
		if reason+source > 0 {
			x.keys = t.appendBlob(x.keys, place, reason+source)
		}
		b = snapshot.AppendBytes(b, x.keys[:reason])
		b = snapshot.AppendBytes(b, x.keys[reason:])
	}
	x.Buf = b
}

var errNoBan = errors.New("there is no ban")

// bans restores bans.
func (u *undumper) bans() error {
	var rules []*memoryRule
	for range u.r.UpTo(MaxRules) {
		rules = append(rules, u.rule())
		if u.r.Failed() {
			break
		}
	}
	for u.r.Len() > 0 {
		u.left = u.r.Len()
		place := u.r.Uvarint()
		var h dumpedBan
		if !h.read(u) || place >= uint64(len(rules)) {
			return errNoBan
		}
		if mr := rules[place]; mr != nil {
			u.ban(mr, &h)
		} else {
			u.done.Unknown++
		}
	}
	if u.r.Failed() {
		return errNoBan
	}
	return nil
}

// A dumpedBan is an entry of the ban table outside of it. Its cause is as in the
// table, or without causeCount to be made of reason and source.
type dumpedBan struct {
	heldBan
	memory time.Duration
	cause  banCause
}

// read reads what dumper.ban has appended, and reports whether that is a ban. If
// the clock was set back since, it moves back with it.
func (h *dumpedBan) read(u *undumper) bool {
	r := u.r
	h.key = r.Bytes(maxBanKey)
	h.until = u.written + r.Varint()
	h.since = h.until - int64(r.Uvarint())
	h.count = r.UpTo(maxCount)
	h.memory = time.Duration(r.UpTo(1<<memoryBits-1)) * time.Millisecond
	if h.memory > MaxSpan || h.since > h.until || !snapshot.ValidTime(h.until, int64(MaxSpan/2)) || !snapshot.ValidTime(h.since, int64(MaxSpan/2)) {
		r.Fail()
	}
	h.cause = banCause(r.Uvarint())
	switch {
	case h.cause&causeCount != 0:
		after, span := h.cause>>memoryBits&(1<<causeAfterBits-1), h.cause&(1<<memoryBits-1)
		if h.cause>>61 != causeCount>>61 || after > MaxExact || time.Duration(span)*time.Millisecond > MaxSpan {
			r.Fail()
		}
		h.source = sourceRule
	case h.cause <= 1:
		h.reason, h.source = string(r.Bytes(maxReason)), string(r.Bytes(maxSource))
		if !utf8.ValidString(h.reason) || !utf8.ValidString(h.source) {
			r.Fail()
		}
		switch {
		case h.cause == 1 && h.source != "": // that of a rule goes without saying
			r.Fail()
		case h.cause == 1:
			h.source = sourceRule
		case h.source == "":
			h.source = sourceManual
		case h.source == sourceRule || h.source == sourceManual:
			r.Fail()
		}
	default:
		r.Fail()
	}
	if u.now < u.written {
		h.since, h.until = earlier(h.since, u.written-u.now), earlier(h.until, u.written-u.now)
	}
	return !r.Failed()
}

// earlier returns the time that is so much before t, or the earliest there is.
func earlier(t, by int64) int64 {
	if by < 0 || t < math.MinInt64+by {
		return math.MinInt64
	}
	return t - by
}

// ban restores a ban under a rule.
func (u *undumper) ban(mr *memoryRule, h *dumpedBan) {
	if u.now < h.until {
		most := int64(MaxSpan)
		if mr.Ban != nil && h.byRule() {
			most = int64(mr.Ban.longest())
		}
		h.until = min(h.until, u.now+most)
		h.since = min(h.since, u.now)
	} else if over := uint64(u.now) - uint64(h.until); over > uint64(h.memory) {
		u.done.Expired++
		return
	}
	h.rule = mr.id
	switch u.m.bans.restore(mr.records.table.Hash(string(h.key)), h, u.now) {
	case banNoRoom:
		u.done.Refused++
	case banKept:
		u.done.Kept++
	default:
		u.done.Bans++
	}
}

// restore puts h into the table at now, as it was. A ban of the key that is there
// and ends no earlier stays, and there are then as many so far as either knows.
func (t *banTable) restore(hash uint64, h *dumpedBan, now int64) banChange {
	s, last := t.shard(hash), h.lastRoom()
	number, ok := t.open(s, last, h.rule, hash, h.key, now)
	if !ok {
		return banNoRoom
	}
	defer s.mu.Unlock()
	e := t.entry(number)
	if e.cause() != 0 {
		e.setPast(max(e.earlier(now), h.count), max(e.memory(), h.memory))
		if e.until() >= h.until {
			return banKept
		}
	} else {
		e.setPast(h.count, h.memory)
	}
	cause := h.cause
	if cause&causeCount == 0 {
		cause, ok = t.causeFor(&h.heldBan, last)
	}
	return s.replace(number, cause, ok, &h.heldBan)
}
