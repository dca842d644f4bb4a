package ratelimit

import (
	"encoding/binary"
	"errors"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/snapshot"
)

// A chunk of bans has the rules of all of them, and then the bans: the place of the rule
// among these, and what [ban.Ban.Append] writes.

// bans exports all bans, those that are remembered included, with the rules of this
// moment.
func (x *dumper) bans() bool {
	rs := x.m.rules.Load()
	x.Begin(snapshot.Bans, x.now)
	x.Buf = binary.AppendUvarint(x.Buf, uint64(len(rs.rules)))
	places := make(map[uint32]uint64)
	for i, mr := range rs.rules {
		places[mr.id] = uint64(i)
		x.Buf = appendRule(x.Buf, mr.Rule)
	}
	x.EndHead()
	for b := range x.m.bans.Saved() {
		place, ok := places[b.Rule]
		if !ok {
			continue
		}
		x.Buf = b.Append(binary.AppendUvarint(x.Buf, place), x.now)
		if x.Full() && !x.flush() {
			return false
		}
	}
	return x.flush()
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
		var b ban.Ban
		if !b.Read(u.r, u.written, u.now) || place >= uint64(len(rules)) {
			return errNoBan
		}
		if mr := rules[place]; mr != nil {
			u.ban(mr, &b)
		} else {
			u.done.Unknown++
		}
	}
	if u.r.Failed() {
		return errNoBan
	}
	return nil
}

// ban restores a ban under a rule. One that the rule began is cut at its longest.
func (u *undumper) ban(mr *memoryRule, b *ban.Ban) {
	if u.now < b.Until {
		most := int64(MaxSpan)
		if mr.Ban != nil && b.Source == ban.SourceRule {
			most = int64(mr.Ban.policy().Longest())
		}
		b.Until = min(b.Until, u.now+most)
		b.Since = min(b.Since, u.now)
	} else if over := uint64(u.now) - uint64(b.Until); over > uint64(b.Memory) {
		u.done.Expired++
		return
	}
	b.Rule = mr.id
	switch u.m.bans.Restore(mr.records.table.Hash(string(b.Key)), b, u.now) {
	case ban.Full:
		u.done.Refused++
	case ban.Kept:
		u.done.Kept++
	default:
		u.done.Bans++
	}
}
