package ratelimit

import "slices"

// BanOf returns the ban of a key that holds now under the named rule, as
// [Limiter.Bans] lists it; held is false if none does. The key is as in a
// [BanRecord]: a client may be any address of the customer that is banned.
//
// The error is a [*RuleError] if there is no such rule; it says what is wrong with
// the key; or it is the store's. With [Memory] the cost is one look-up, under a lock
// that decisions do not take unless they begin a ban, and a key of more than a
// kibibyte is found too. With any other Store the cost is that of Bans.
func (l *Limiter) BanOf(rule string, key ...string) (b BanRecord, held bool, err error) {
	set := l.Set()
	r := set.named(rule)
	if r == nil {
		return BanRecord{}, false, set.NoRule(rule)
	}
	k, err := valuesKey(r.Key, key)
	if err != nil {
		return BanRecord{}, false, err
	}
	if l.memory != nil {
		b, held = l.memory.banOf(rule, k, l.now())
		return b, held, nil
	}
	values := banValues(r.Key, k)
	for b, err := range l.store.Bans() {
		if err != nil {
			return BanRecord{}, false, err
		}
		if b.Rule == rule && slices.Equal(b.Key, values) {
			return b, true, nil
		}
	}
	return BanRecord{}, false, nil
}

// banOf returns the ban of key that holds at now under a rule.
func (m *Memory) banOf(rule string, key []byte, now int64) (BanRecord, bool) {
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
