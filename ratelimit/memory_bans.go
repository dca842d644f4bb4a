package ratelimit

import "iter"

// Ban implements [Store]: the key is banned from b.Since on. [Limiter.Ban] knows
// what time it is. The error is that of a rule that there is not, of a key that
// is not one of its, or ErrNoRoom.
func (m *Memory) Ban(b BanRecord) error {
	if b.Source == "" {
		b.Source = sourceManual
	}
	if err := b.validate(); err != nil {
		return err
	}
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return rs.set.NoRule(b.Rule)
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

// Lift implements [Store]. Whether a ban held is said as of the newest time at
// which a key was added; [Limiter.Lift] knows what time it is.
func (m *Memory) Lift(rule string, key []byte) (bool, error) {
	rs := m.rules.Load()
	if rs.named(rule) == nil {
		return false, rs.set.NoRule(rule)
	}
	return m.lift(rule, key, rs.now()), nil
}

// Bans implements [Store]: the bans that hold as of the newest time at which a
// key was added, the one that ends first first. [Limiter.Bans] knows what time it
// is.
func (m *Memory) Bans() iter.Seq2[BanRecord, error] {
	return m.bansAt(m.rules.Load().now())
}
