package ratelimit

import (
	"context"
	"iter"
	"time"
)

// Ban implements [store.Store]: the key is banned from b.Since on. [BanList.Add] uses the
// present time. It is an error if there is no such rule, if the key is not one of its,
// or if there is no memory, which is ErrNoRoom.
func (m *memory) Ban(_ context.Context, b BanRecord) error {
	if b.Source == "" {
		b.Source = sourceManual
	}
	if err := b.validate(); err != nil {
		return err
	}
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return rs.set.noRule(b.Rule)
	}
	key, err := banKey(mr.Key, b.Key)
	if err != nil {
		return err
	}
	now := rs.now()
	if !b.Since.IsZero() {
		now = nanos(b.Since)
	}
	_, err = m.addBan(b, key, now)
	return err
}

// Unban implements [store.Store]. It reports whether a ban held at the newest time at which a
// key was added; [BanList.Remove] uses the present time.
func (m *memory) Unban(_ context.Context, rule string, key []byte) (bool, error) {
	rs := m.rules.Load()
	if rs.named(rule) == nil {
		return false, rs.set.noRule(rule)
	}
	return m.removeBan(rule, key, rs.now()), nil
}

// Bans implements [store.Store]: the bans that hold at the newest time at which a key was
// added, in the order in which they end. [BanList.All] uses the present time.
func (m *memory) Bans(context.Context) iter.Seq2[BanRecord, error] {
	return m.bansAt(m.rules.Load().now())
}

// bansAt yields the bans that hold at now.
func (m *memory) bansAt(now int64) iter.Seq2[BanRecord, error] {
	return func(yield func(BanRecord, error) bool) {
		rules := make(map[uint32]*Rule)
		for _, mr := range m.rules.Load().rules {
			rules[mr.id] = mr.Rule
		}
		for h := range m.bans.each(now) {
			r := rules[h.rule]
			if r == nil {
				continue // gone meanwhile
			}
			if !yield(h.record(r), nil) {
				return
			}
		}
	}
}

// record returns h as it is listed, of a key of r.
func (h *heldBan) record(r *Rule) BanRecord {
	return BanRecord{
		Rule: r.Name, Key: banValues(r.Key, h.key), Since: time.Unix(0, h.since), Until: time.Unix(0, h.until),
		Count: h.count, Reason: h.reason, Source: h.source,
	}
}

// addBan adds b at now. It was validated, and key is its key.
func (m *memory) addBan(b BanRecord, key []byte, now int64) (banChange, error) {
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return banNoRoom, rs.set.noRule(b.Rule)
	}
	memory := time.Duration(defaultRemember)
	if mr.Ban != nil {
		memory = mr.Ban.remember()
	}
	h := heldBan{
		rule: mr.id, key: key, since: now, until: nanos(b.Until), count: b.Count,
		reason: b.Reason, source: b.Source,
	}
	if !b.Since.IsZero() {
		h.since = nanos(b.Since)
	}
	hash := mr.records.table.Hash(string(key))
	change := m.bans.add(hash, &h, memory, now)
	rs = m.rules.Load()
	if after := rs.named(b.Rule); after == nil || after.id != mr.id {
		m.bans.remove(mr.id, hash, key, now) // the rule has gone, and its bans
		return change, rs.set.noRule(b.Rule)
	}
	if change == banNoRoom {
		return change, ErrNoRoom
	}
	return change, nil
}

// removeBan ends the ban of key under a rule, and reports whether one held at now.
func (m *memory) removeBan(rule string, key []byte, now int64) bool {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return false
	}
	key = m.stored(key)
	return m.bans.remove(mr.id, mr.records.table.Hash(string(key)), key, now)
}

// banOf returns the ban of key that holds at now under a rule.
func (m *memory) banOf(rule string, key []byte, now int64) (BanRecord, bool) {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return BanRecord{}, false // gone meanwhile, and its bans
	}
	stored := m.stored(key)
	h, ok := m.bans.heldAt(mr.id, mr.records.table.Hash(string(stored)), stored, now)
	if !ok {
		return BanRecord{}, false
	}
	return h.record(mr.Rule), true
}
