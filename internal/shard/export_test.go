package shard

// Probes returns how many slots of the index a search for key looks at.
func (t *Table) Probes(key []byte) int {
	hash := t.Hash(key)
	s := t.Shard(hash)
	mask := uint64(len(s.index) - 1)
	n := 1
	for i := hash & mask; s.index[i] != 0; i = (i + 1) & mask {
		r := uint32(s.index[i]) - 1
		if rec := s.record(r); s.index[i]>>32 == hash>>32 && string(s.key(rec[1])) == string(key) {
			break
		}
		n++
	}
	return n
}

// Blocks returns how many blocks ls has ever handed out for the first time.
func (ls *Logs) Blocks() int {
	n := 0
	for i := range ls.classes {
		n += int(ls.classes[i].n)
	}
	return n
}

// Probes returns how many places of its page a search for key looks at.
func (t *Inline) Probes(key string) int {
	hash := t.Hash(key)
	p := t.Page(hash)
	r, ok := p.Find(hash, key)
	if !ok {
		return 0
	}
	n := (r.at - p.home(tagOf(hash))) / int(p.stride)
	if n < 0 {
		n += int(p.cap)
	}
	return n + 1
}
