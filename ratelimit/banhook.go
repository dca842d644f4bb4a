package ratelimit

// tellBans tells OnBan which bans a request has begun or made longer, as they are
// now. Nothing is locked.
func (m *memory) tellBans(probes []probe, r *request, now int64) {
	for i := range probes {
		p := &probes[i]
		if !p.extended && !r.Subjects[i].Outcome.Started {
			continue
		}
		// What is unbanned already, or has become one that was added by hand and holds
		// for longer, is not told.
		if h, ok := m.bans.heldAt(p.id, p.hash, bytesOf(p.key), now); ok && h.byRule() {
			m.config.OnBan(h.record(p.Rule))
		}
	}
}

// heldAt returns the ban that holds for a key at now.
func (t *banTable) heldAt(rule uint32, hash uint64, key []byte, now int64) (h heldBan, ok bool) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok || t.entry(number).until() <= now {
		return h, false
	}
	return t.held(t.entry(number)), true
}
