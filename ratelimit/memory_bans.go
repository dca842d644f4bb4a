package ratelimit

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/keytable"
)

// copyAt returns the bans of m, as of now.
func (m *memory) copyAt(now int64) banCopy {
	rs := m.rules.Load()
	return banCopy{Table: m.bans, Now: now, Set: rs.set, Numbers: rs.numbers, Find: m.find}
}

// find returns how a key is stored, and its hash, which is the same under all rules.
func (m *memory) find(key []byte) (stored []byte, hash uint64) {
	stored = m.stored(key)
	return stored, maphash.Bytes(m.seed, stored)
}

// banRecord returns a ban of a key of r as it is listed.
func banRecord(r *Rule, b *ban.Ban) BanRecord {
	return BanRecord{
		Rule: r.Name, Key: banValues(r.Key, b.Key), Since: time.Unix(0, b.Since), Until: time.Unix(0, b.Until),
		Count: b.Count, Reason: b.Reason, Source: b.Source,
	}
}

// addBan adds b at now. It was validated, and key is its key.
func (m *memory) addBan(b BanRecord, key []byte, now int64) error {
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return rs.set.noRule(b.Rule)
	}
	added := ban.Ban{Rule: m.banID(mr, key, b.Source), Key: key, Since: now, Until: nanos(b.Until), Count: b.Count, Reason: b.Reason, Source: b.Source, Memory: ban.DefaultRemember}
	if mr.Ban != nil {
		added.Memory = mr.Ban.policy().Remembered()
	}
	if !b.Since.IsZero() {
		added.Since = nanos(b.Since)
	}
	hash := maphash.Bytes(m.seed, key)
	result := m.bans.Add(hash, &added, now)
	m.mark(b.Rule, hash, key)
	rs = m.rules.Load()
	if after := rs.named(b.Rule); after == nil || after.id != mr.id {
		m.bans.Remove(added.Rule, hash, key, now) // the rule has gone, and its bans
		return rs.set.noRule(b.Rule)
	}
	if result == ban.Full {
		return ErrBansFull
	}
	return nil
}

// removeBan ends the ban of key under a rule, and reports whether one held at now.
func (m *memory) removeBan(rule string, key []byte, now int64) bool {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return false
	}
	key, hash := m.find(key)
	held := m.bans.Remove(mr.id, hash, key, now)
	return m.bans.Remove(mr.id|ofNetworks, hash, key, now) || held
}

// networkBan returns the ban of a network around key, under a rule, that holds at now and ends last.
func (m *memory) networkBan(rule string, key []byte, now int64) (record BanRecord, held bool) {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return record, false // gone meanwhile, and its bans
	}
	network, _, held := m.bannedNetwork(mr, key, now)
	if !held {
		return record, false
	}
	key, hash := m.find(network.AppendTo(nil))
	b, held := m.bans.Get(mr.id|ofNetworks, hash, key, now)
	return banRecord(mr.Rule, &b), held
}

// tellBans calls OnBan for the bans that a request has begun or extended, as they are now.
// Nothing is locked.
func (m *memory) tellBans(probes []probe, r *request, now int64) {
	for i := range probes {
		p := &probes[i]
		if !p.extended && !r.Subjects[i].Outcome.Started {
			continue
		}
		// It may have been ended since, or be replaced by a longer one that was added.
		if b, ok := m.bans.Get(p.id, p.hash, bytesOf(p.key), now); ok && b.Source == ban.SourceRule {
			m.config.OnBan(banRecord(p.Rule, &b))
		}
	}
}

// The mark of a record says that a ban of its key may hold under its rule, and has to be
// asked for: so a key without one costs a bit that is read anyway. It is set by whoever makes
// the record, begins a ban, or adds one, with the record locked after the ban is in the table.
// It is cleared when no ban holds.

// mark marks the record of key under the named rule, if there is one.
func (m *memory) mark(rule string, hash uint64, key []byte) {
	for {
		mr := m.rules.Load().named(rule)
		if mr == nil {
			return
		}
		r, state := mr.records.table.Lock(hash, keytable.Text(key))
		if state == keytable.Found {
			r.SetMark()
			r.Unlock()
		}
		if state != keytable.Moved { // else the rules have changed
			return
		}
	}
}

// markBanned marks a new record if its key is banned.
func (rs *records) markBanned(r keytable.Record, hash uint64, key string) {
	if rs.banned.Load() == 0 {
		return
	}
	if _, known := rs.bans.Until(rs.rule, hash, bytesOf(key), math.MinInt64); known {
		r.SetMark()
	}
}

// bannedUntil returns when the ban of a key ends that holds at now, and clears the mark of
// its record if none does.
func (rs *records) bannedUntil(r keytable.Record, hash uint64, key string, now int64) (until int64, ok bool) {
	if until, ok = rs.bans.Until(rs.rule, hash, bytesOf(key), now); !ok {
		r.ClearMark()
	}
	return until, ok
}

// bannedUntil returns when the ban of the key of p ends that holds at now.
func (p *probe) bannedUntil(r *request, now int64) (until int64, ok bool) {
	switch {
	case p.held && !p.record.Marked():
		return 0, false
	case p.held && !r.Peek:
		return p.records.bannedUntil(p.record, p.hash, p.key, now)
	}
	return p.records.bans.Until(p.id, p.hash, bytesOf(p.key), now)
}
