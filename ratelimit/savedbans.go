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
func (x *exporter) bans() bool {
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
		if x.Full() && !x.Flush() {
			return false
		}
	}
	return x.Flush()
}

var errNoBan = errors.New("there is no ban")

// bans restores bans.
func (in *chunkImport) bans() error {
	var rules []*memoryRule
	for range in.r.UpTo(MaxRules) {
		rules = append(rules, in.rule())
		if in.r.Failed() {
			break
		}
	}
	for in.r.Len() > 0 {
		in.at = in.r.Offset()
		place := in.r.Uvarint()
		var b ban.Ban
		if !b.Read(in.r, in.written, in.now) || place >= uint64(len(rules)) {
			return errNoBan
		}
		if mr := rules[place]; mr != nil {
			in.ban(mr, &b)
		} else {
			in.done.Unknown++
		}
	}
	if in.r.Failed() {
		return errNoBan
	}
	return nil
}

// ban restores a ban under a rule. One that the rule began is cut at its longest.
func (in *chunkImport) ban(mr *memoryRule, b *ban.Ban) {
	if in.now < b.Until {
		most := int64(MaxSpan)
		if mr.Ban != nil && b.Source == ban.SourceRule {
			most = int64(mr.Ban.policy().Longest())
		}
		b.Until = min(b.Until, in.now+most)
		b.Since = min(b.Since, in.now)
	} else if over := uint64(in.now) - uint64(b.Until); over > uint64(b.Memory) {
		in.done.Expired++
		return
	}
	b.Rule = mr.id
	switch in.m.bans.Restore(mr.records.table.Hash(string(b.Key)), b, in.now) {
	case ban.Full:
		in.done.Refused++
	case ban.Kept:
		in.done.Kept++
	default:
		in.m.noteNetwork(mr, b.Key)
		in.done.Bans++
	}
}
