package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/ban"
)

// copyAt returns the bans of m, as of now.
func (m *memory) copyAt(now int64) banCopy {
	rs := m.rules.Load()
	c := banCopy{Table: m.bans, Now: now, Set: rs.set}
	for _, mr := range rs.rules {
		c.Numbers = append(c.Numbers, mr.id)
	}
	return c
}

// banRecord returns a ban of a key of r as it is listed.
func banRecord(r *Rule, b *ban.Ban) BanRecord {
	return BanRecord{
		Rule: r.Name, Key: banValues(r.Key, b.Key), Since: time.Unix(0, b.Since), Until: time.Unix(0, b.Until),
		Count: b.Count, Reason: b.Reason, Source: b.Source,
	}
}

// addBan adds b at now. It was validated, and key is its key.
func (m *memory) addBan(b BanRecord, key []byte, now int64) (ban.Result, error) {
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return ban.Full, rs.set.noRule(b.Rule)
	}
	added := ban.Ban{Rule: m.banID(mr, key, b.Source), Key: key, Since: now, Until: nanos(b.Until), Count: b.Count, Reason: b.Reason, Source: b.Source, Memory: ban.DefaultRemember}
	if mr.Ban != nil {
		added.Memory = mr.Ban.policy().Remembered()
	}
	if !b.Since.IsZero() {
		added.Since = nanos(b.Since)
	}
	hash := mr.records.table.Hash(string(key))
	result := m.bans.Add(hash, &added, now)
	rs = m.rules.Load()
	if after := rs.named(b.Rule); after == nil || after.id != mr.id {
		m.bans.Remove(added.Rule, hash, key, now) // the rule has gone, and its bans
		return result, rs.set.noRule(b.Rule)
	}
	if result == ban.Full {
		return result, ErrBansFull
	}
	return result, nil
}

// removeBan ends the ban of key under a rule, and reports whether one held at now.
func (m *memory) removeBan(rule string, key []byte, now int64) bool {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return false
	}
	key = m.stored(key)
	hash := mr.records.table.Hash(string(key))
	held := m.bans.Remove(mr.id, hash, key, now)
	return m.bans.Remove(mr.id|ofNetworks, hash, key, now) || held
}

// banOf returns the ban of key that holds at now under a rule.
func (m *memory) banOf(rule string, key []byte, now int64) (BanRecord, bool) {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return BanRecord{}, false // gone meanwhile, and its bans
	}
	key = m.stored(key)
	hash := mr.records.table.Hash(string(key))
	b, ok := m.bans.Get(mr.id|ofNetworks, hash, key, now)
	if !ok {
		b, ok = m.bans.Get(mr.id, hash, key, now)
	}
	if !ok {
		b, ok = m.networkBan(mr, key, now)
	}
	if !ok {
		return BanRecord{}, false
	}
	return banRecord(mr.Rule, &b), true
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
