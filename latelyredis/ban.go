package latelyredis

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// banBytes is the length of a ban in an answer: its end, its start, how many there were, whether a rule began it, and a
// checksum.
const banBytes = 2*uint56 + 4 + 1 + 2

// banIntact reports whether a ban in an answer of that time has its checksum, see record.lua: a damaged end would be in force here
// for years.
func banIntact(data string, now int64) bool {
	sum := readUint56(data) + readUint56(data[uint56:]) + int64(binary.BigEndian.Uint32([]byte(data[2*uint56:]))) + int64(data[banBytes-3]) + now
	return sum%65521 == int64(binary.BigEndian.Uint16([]byte(data[banBytes-2:])))
}

// extendedBy is by how much longer a known ban must be to be listed again: hits that extend
// a ban may be many.
const extendedBy = time.Second

// readBan reads a ban of rl from an answer. Its times are those of the server.
func (rl *rule) readBan(data string, key []byte) ban.Ban {
	b := ban.Ban{
		Rule: rl.banID, Key: listedKey(key), Until: readUint56(data) * 1000, Since: readUint56(data[uint56:]) * 1000,
		Count: uint64(binary.BigEndian.Uint32([]byte(data[2*uint56:]))), Source: ban.SourceManual, Memory: rl.memory,
	}
	if data[banBytes-3] == 1 {
		b.Source = ban.SourceRule
		if rl.ban != nil {
			b.Reason = rl.ban.Reason()
		}
	}
	return b
}

// banOf returns the ban in answer k of g.
func (g *group) banOf(l *layout, k int) ban.Ban {
	at := uint56 + len(g.members)*answerBytes
	for i := range k {
		if g.answer(i).status&answerBanned != 0 {
			at += banBytes
		}
	}
	s := &g.request.Subjects[g.members[k]]
	return l.rules[s.Outcome.Rule].readBan(g.data[at:], s.Key)
}

// learn copies the bans in the answers, and adds those that are new in the copy to the shared
// list. If that fails, sync does it later, or the next node that sees the ban.
func (s *Store) learn(ctx context.Context, l *layout, groups []*group) {
	var calls []*call
	var bans []ban.Ban
	for _, g := range groups {
		for k, i := range g.members {
			if g.err != nil || g.answer(k).status&answerBanned == 0 {
				continue
			}
			b := g.banOf(l, k)
			if until, ok := s.mirror.until(b.Rule, b.Key); ok && b.Until-until < int64(extendedBy) {
				continue
			}
			if s.mirror.add(&b) {
				s.tell(&news{ban: b})
				calls = append(calls, s.listing(l, &l.rules[g.request.Subjects[i].Outcome.Rule], &b, readUint56(g.data), true))
				bans = append(bans, b)
			}
		}
	}
	if len(calls) > 0 && s.exchange(ctx, l, calls) != nil {
		s.unlisted.Store(true)
	}
	for i, c := range calls {
		if c.err == nil && c.data == banEnded {
			s.removeEnded(bans[i])
		}
	}
}

// removeEnded removes a ban from the copy that was ended elsewhere before it was added there.
func (s *Store) removeEnded(b ban.Ban) {
	until, ok := s.mirror.until(b.Rule, b.Key)
	if another := !ok || until != b.Until; !another && s.mirror.remove(&b) {
		s.tell(&news{b, true})
	}
}

// Ban bans the key in b from b.Since, or from now if that is zero, in its record and in the
// list. An existing ban that ends later is kept.
func (s *Store) Ban(ctx context.Context, b ratelimit.BanRecord) error {
	l := s.layout.Load()
	rl, err := l.named(b.Rule)
	if err != nil {
		return err
	}
	key, err := keyvalue.Rejoin(rl.key, nil, b.Key...)
	if err != nil {
		return err
	}
	since := s.mirror.server()
	if !b.Since.IsZero() {
		since = b.Since.UnixMicro()
	}
	return s.addBan(ctx, l, rl, &ban.Ban{
		Rule: rl.banID, Key: key, Since: since * 1000, Until: b.Until.Add(time.Microsecond - 1).UnixNano(),
		Count: b.Count, Reason: b.Reason, Source: b.Source,
	})
}

// addBan adds a ban to the record of its key, and to the list if it holds. Of two bans of one key
// the one that ends later holds, so adding a ban twice does no harm.
func (s *Store) addBan(ctx context.Context, l *layout, rl *rule, b *ban.Ban) error {
	c := s.banCall(l, rl, b)
	if _, _, err := s.correct(ctx, l, &c); err != nil {
		return err
	}
	if len(c.data) != 2*uint56+banBytes || !banIntact(c.data[2*uint56:], readUint56(c.data)) {
		return errAnswer
	}
	added := rl.added(c.data, b)
	if longer := added.Until/1000 > b.Until/1000; longer || added.Until <= readUint56(c.data)*1000 {
		return nil // a longer ban is in the list, or the next node that sees it adds it
	}
	s.mirror.add(&added) // before it is listed, so that sync has nothing to tell of it
	listing := s.listing(l, rl, &added, readUint56(c.data), true)
	if err := s.exchange(ctx, l, []*call{listing}); err != nil {
		return err
	}
	if listing.data == banEnded {
		s.removeEnded(added)
	}
	return nil
}

// banCall returns the call that adds b, a ban of rl, to its record. Its times are those of the
// server.
func (s *Store) banCall(l *layout, rl *rule, b *ban.Ban) call {
	byRule := byte(0)
	if b.Source == ban.SourceRule {
		byRule = 1
	}
	c := s.correction(l, correctBan, uint64(max(b.Until/1000, 0)), max(b.Since/1000, 0), anyResets, rl.number, b.Key)
	told := appendUint56(appendUint56([]byte{byRule}, 0), 0)
	told = binary.BigEndian.AppendUint32(told, uint32(min(b.Count, 1<<25-1)))
	c.args = append(c.args, string(append(appendUint56(told, rl.memory.Microseconds()), 0, 0, 0, 0)))
	return c
}

// added returns the ban that holds after b was added, from the answer of a banCall.
func (rl *rule) added(data string, b *ban.Ban) ban.Ban {
	added := rl.readBan(data[2*uint56:], b.Key)
	if added.Source != ban.SourceRule || b.Source == ban.SourceRule { // else that of the rule ends later
		added.Reason, added.Source = b.Reason, b.Source
	}
	return added
}

// Unban ends the ban of a key under the named rule, in its record and in the list, and deletes
// earlier ones. It reports whether a ban held. After an error, call it again: the ban may
// hold on some nodes.
func (s *Store) Unban(ctx context.Context, rule string, key []byte) (held bool, err error) {
	l := s.layout.Load()
	rl, err := l.named(rule)
	if err != nil {
		return false, err
	}
	c := s.correction(l, correctUnban, 0, 0, anyResets, rl.number, key)
	at, taken, err := s.correct(ctx, l, &c)
	if err != nil {
		return false, err
	}
	gone := ban.Ban{Rule: rl.banID, Key: listedKey(key)}
	s.mirror.remove(&gone) // before it is listed, as in addBan
	return taken > 0, s.exchange(ctx, l, []*call{s.listing(l, rl, &gone, at, taken > 0)})
}

// Bans implements the store of a Limiter: it returns this node's copy of the list.
func (s *Store) Bans() store.BanCopy[*ratelimit.Set] {
	l := s.layout.Load()
	return store.BanCopy[*ratelimit.Set]{
		Table: s.mirror.table, Now: s.mirror.server() * 1000, Set: l.set, Numbers: l.banIDs, Find: s.mirror.find, Err: s.listUnread(),
	}
}

// record returns a ban of rl as it is listed.
func (rl *rule) record(b *ban.Ban) ratelimit.BanRecord {
	r := ratelimit.BanRecord{
		Rule: rl.name, Since: time.Unix(0, b.Since), Until: time.Unix(0, b.Until),
		Count: b.Count, Reason: b.Reason, Source: b.Source,
	}
	for v := range rl.key.Parts(b.Key) {
		r.Key = append(r.Key, string(v))
	}
	if len(r.Key) != len(rl.fields) {
		r.Key = []string{string(b.Key)} // the digest of a long key
	}
	return r
}

// refuseBanned decides about a request that an enforced ban refuses which this node has a copy
// of, and reports whether there is one. A ban that each hit makes longer is of Redis, unless
// away is set.
func (s *Store) refuseBanned(l *layout, r *request, away bool) bool {
	if s.mirror.table.Len() == 0 {
		return false
	}
	banned := false
	for i := range r.Subjects {
		sub := &r.Subjects[i]
		rl := &l.rules[sub.Outcome.Rule]
		_, ok := s.mirror.until(rl.banID, sub.Key)
		if ok && rl.ban != nil && rl.ban.Extend && !away {
			return false
		}
		banned = banned || ok && !rl.shadow
	}
	if !banned {
		return false
	}
	r.Now = s.mirror.server() * 1000
	for i := range r.Subjects {
		s.refuse(l, r, &r.Subjects[i])
	}
	return true
}

// refuse fills in the outcome of a subject of a banned event.
func (s *Store) refuse(l *layout, r *request, sub *subject) {
	rl := &l.rules[sub.Outcome.Rule]
	sub.Outcome = outcome{Rule: sub.Outcome.Rule, Set: sub.Outcome.Set}
	o := &sub.Outcome
	until, ok := s.mirror.until(rl.banID, sub.Key)
	if o.Skipped = !ok; !ok {
		return
	}
	left := max(time.Duration(until-r.Now), 1)
	o.Refused, o.Banned, o.BannedUntil = true, true, time.Unix(0, until)
	o.RetryAfter, o.ResetAfter = left, left
	if rl.ban != nil {
		o.Limit = rl.ban.After
	} else {
		o.Limit = rl.most[0]
	}
}
