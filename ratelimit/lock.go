package ratelimit

import (
	"slices"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/store"
)

// A probe holds the counts of one subject while it is judged: a locked record, the sketch of its
// rule, or, for a peek, a copy of the record.
type probe struct {
	*memoryRule
	o      *outcome // of the subject
	hash   uint64
	key    string
	spot   keytable.Hint // the pre-fetch hint for the record
	record keytable.Record
	w      []uint64 // the words of the record; nil if the key has no record
	sketch []sketch.Held
	n      uint64 // the limit that an Adapt sets now
	given  uint64 // N of the event for the limit with AtMost; 0 means N of the rule
	value  uint64 // the hash of the value that a ban counts once; 0 without one

	held     bool // record is locked
	copied   bool // w is a copy of the words of the record
	counted  bool // a charge to the sketch takes effect
	noMemory bool // the key has neither record nor sketch: the budget is spent
	look     bool // the rule counts the answer to the event, so the request creates no record

	extended bool // a ban of the key has become longer
}

// grown reports whether a key without a record, which is not locked, has got one meanwhile. Its
// count would then be older than the counts of the other keys.
func grown(probes []probe) bool {
	for i := range probes {
		if p := &probes[i]; p.w == nil && p.sketch == nil && p.records.table.Has(p.hash, p.key) {
			return true
		}
	}
	return false
}

// decide judges one request. Its errors are ErrKeyTooLong, for a key of a
// mebibyte or more, and store.ErrStale. The cost is one look-up for each subject, of a
// cache miss or two, with the record locked meanwhile.
func (m *memory) decide(r *request) error {
	rs := m.rules.Load()
	if rs.set != r.Set {
		return store.ErrStale
	}
	s := scratchOf(r)
	probes := slices.Grow(s.probes[:0], len(r.Subjects))[:len(r.Subjects)]
	s.probes = probes
	defer clear(probes) // of pointers into tables
	// A request that only looks begins again if one of its keys has got a record meanwhile. Each
	// time that is another key, or one that was evicted in between.
	for tries := len(probes); ; tries-- {
		s.held = s.held[:0]
		if err := m.probe(rs, r, probes); err != nil {
			return err
		}
		rs.ensureMigrated(probes)
		if !lock(probes, r) || m.rules.Load() != rs { // an Update that has returned holds
			unlock(probes)
			return store.ErrStale
		}
		if !r.Peek && !r.Looks || len(probes) == 1 || tries == 0 || !grown(probes) {
			break
		}
		unlock(probes)
		clear(probes)
	}
	now := newest(probes, r.Now)
	if r.Peek {
		copyRecords(r, probes)
	}
	m.judge(probes, r, now)
	unlock(probes)
	r.Now = now
	if m.config.OnBan != nil && !r.Peek {
		m.tellBans(probes, r, now)
	}
	return nil
}

// probe sets up the probe of each subject of r, without its record, but with all of
// them on their way to the cache.
func (m *memory) probe(rs *memoryRules, r *request, probes []probe) error {
	var hash uint64
	var hashed *byte
	for i := range probes {
		s, p := &r.Subjects[i], &probes[i]
		if len(s.Key) > maxKey {
			return ErrKeyTooLong
		}
		first := unsafe.SliceData(s.Key)
		p.key = unsafe.String(first, len(s.Key)) // only read
		if len(p.key) > maxStored {
			digest := m.stored(s.Key)
			first, p.key = unsafe.SliceData(digest), unsafe.String(unsafe.SliceData(digest), len(digest))
		}
		p.memoryRule, p.o, p.look = rs.rules[s.Outcome.Rule], &s.Outcome, s.Look
		// Rules on one key are handed the same bytes, which are hashed once.
		if i == 0 || first != hashed || len(p.key) != len(probes[i-1].key) {
			hash, hashed = p.records.table.Hash(p.key), first
		}
		p.hash, p.spot = hash, p.records.table.Prefetch(hash)
		if s.N > 0 {
			p.given = shareOf(s.N, uint64(m.nodes.Load()))
		}
		if len(s.Value) > 0 {
			p.value = m.hashValue(s.Value)
		}
	}
	return nil
}

// lock locks what the probes count in, in the order of tables, and reports
// whether the tables are those that the store still uses. If r looks, no record is
// made for a key that has none.
func lock(probes []probe, r *request) bool {
	if inOrder(probes) {
		for i := range probes {
			if !probes[i].lock(r) {
				return false
			}
		}
		return true
	}
	// Rules have changed places since their tables were made, or the subjects
	// come in another order. They are few: look for the next table each time.
	for last := uint64(0); ; {
		var next *probe
		for i := range probes {
			if p := &probes[i]; p.records.number > last && (next == nil || p.records.number < next.records.number) {
				next = p
			}
		}
		if next == nil {
			return true
		}
		if last = next.records.number; !next.lock(r) {
			return false
		}
	}
}

// inOrder reports whether the probes come in the order in which their tables
// were made.
func inOrder(probes []probe) bool {
	for i := 1; i < len(probes); i++ {
		if probes[i-1].records.number > probes[i].records.number {
			return false
		}
	}
	return true
}

// lock locks the record of the probe's key, or the sketch if that is where it is
// counted. It reports false if the table has moved. If the event only looks, no record is made.
func (p *probe) lock(r *request) bool {
	rs := p.records
	for record, state := rs.table.LockAt(p.spot, p.hash, p.key); ; record, state = rs.table.Lock(p.hash, p.key) {
		if state == keytable.Absent && !r.Peek && (!p.look || p.strikesNew(r.Cost)) {
			keytable.Raise(&rs.now, r.Now)
			record, state = rs.table.Add(p.hash, p.key)
		}
		switch state {
		case keytable.Moved:
			return false
		case keytable.Added:
			rs.begin(record, p.hash, p.key, r.Now)
			fallthrough
		case keytable.Found:
			p.record, p.w, p.held = record, record.Words(), true
			return true
		case keytable.Absent:
			if rs.sketches.Load() == nil {
				return true
			}
		}
		if p.lockSketch(r) {
			return true
		}
	}
}

// strikesNew reports whether an event of that cost is refused even if nothing was counted, and a ban counts that.
func (p *probe) strikesNew(cost uint64) bool {
	if p.Ban == nil || p.Ban.Of != Refusals || p.adapt != nil {
		return false
	}
	for i := range p.Limits {
		if cost > p.limitN(i) {
			return true
		}
	}
	return false
}

// copyRecords gives each probe a copy of its record to be judged, so that looking
// changes nothing, and one without counts if the key has none. What a log holds
// outside the record is not changed by judging.
func copyRecords(r *request, probes []probe) {
	words := 0
	for i := range probes {
		words += probes[i].records.words
	}
	s := scratchOf(r)
	s.words = slices.Grow(s.words[:0], words)
	all := s.words[:words]
	for i := range probes {
		p := &probes[i]
		if p.sketch != nil {
			continue
		}
		n := p.records.words
		clear(all[copy(all[:n], p.w):n])
		p.w, p.copied, all = all[:n:n], true, all[n:]
	}
}

// unlock unlocks what is locked.
func unlock(probes []probe) {
	for i := range probes {
		if p := &probes[i]; p.held {
			p.record.Unlock()
		} else {
			p.unlockSketch()
		}
	}
}

// newest returns the newest time at which one of the probes was judged, or now.
func newest(probes []probe, now int64) int64 {
	for i := range probes {
		switch p := &probes[i]; {
		case p.w != nil:
			now = max(now, keytable.Time(p.w[wordNewest]))
		case p.sketch != nil: // it may have had a record that has expired
			now = max(now, p.records.expired.Load())
		}
	}
	return now
}
