package client

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

const (
	tallyShards = 16

	// tallyRecordBytes is what a key takes beside its own bytes: a record, and its place in
	// a map of which half is used.
	tallyRecordBytes = int(unsafe.Sizeof(tallyRecord{})) + 2*int(unsafe.Sizeof("")+unsafe.Sizeof(0)+1)
)

// A tally adds up events by rule and key until they are taken: each event is taken once, or
// dropped and counted as such. Its memory is bounded. When it is spent, the half of the keys
// with the lowest counts is dropped, so that those with most events are kept.
//
// An add locks one of 16 shards, and allocates only for a new key. A tally is safe for
// concurrent use.
type tally struct {
	seed   maphash.Seed
	limit  int      // bytes of a shard
	early  []uint64 // by rule: the count of a key from which urgent is called
	urgent func()
	shards [tallyShards]tallyShard
}

type tallyShard struct {
	mu      sync.Mutex
	open    tallyBatch
	spare   tallyBatch // empty
	added   uint64     // events, in all
	dropped uint64     // events of keys that were dropped
	pending uint64     // events in open
	called  bool       // urgent was called since open was taken
	_       [64]byte
}

// A tallyRecord is how many events of a key were counted under a rule.
type tallyRecord struct {
	rule int
	key  string
	n    uint64
	at   int64 // the earliest of their times, in nanoseconds since 1970
}

// newTally returns an empty tally that keeps up to limit bytes of keys and counts, and as
// many again while they are taken. It calls urgent when the count of a key reaches early
// for its rule: once until the key's shard is taken.
func newTally(limit int, early []uint64, urgent func()) *tally {
	t := &tally{seed: maphash.MakeSeed(), limit: limit / tallyShards, early: early, urgent: urgent}
	for i := range t.shards {
		t.shards[i].open, t.shards[i].spare = newTallyBatch(len(early)), newTallyBatch(len(early))
	}
	return t
}

// add counts n events of a key, at a time in nanoseconds. It copies the key. If quiet,
// they are never urgent.
func (t *tally) add(rule int, key string, n uint64, at int64, quiet bool) {
	s := t.lock(key)
	s.added += n
	now := s.count(t.limit, rule, key, n, at)
	call := !quiet && now >= t.early[rule] && !s.called
	s.called = s.called || call
	s.mu.Unlock()
	if call {
		t.urgent()
	}
}

// lock locks a shard for a key: the shard of its hash or, if another goroutine has it, the
// next one, so that goroutines that count one key do not wait for each other.
func (t *tally) lock(key string) *tallyShard {
	home := maphash.String(t.seed, key)
	for i := range uint64(3) {
		if s := &t.shards[(home+i)%tallyShards]; s.mu.TryLock() {
			return s
		}
	}
	s := &t.shards[home%tallyShards]
	s.mu.Lock()
	return s
}

// count adds to the record of a key, and returns its count.
//
// REQUIRES: s.mu.
func (s *tallyShard) count(limit, rule int, key string, n uint64, at int64) uint64 {
	b := &s.open
	i, ok := b.index[rule][key]
	if !ok {
		size := tallyRecordBytes + len(key)
		if b.bytes+size > limit {
			lost := b.shrink()
			s.dropped += lost
			s.pending -= lost
		}
		if b.bytes+size > limit {
			s.dropped += n // it alone is too large
			return 0
		}
		i = b.insert(rule, key, at)
	}
	r := &b.records[i]
	r.n += n
	r.at = min(r.at, at)
	s.pending += n
	return r.n
}

// take passes what was counted to do, which may put it back. Keys with more events come
// first: if not all can be sent, those with fewest wait. One goroutine at a time may take.
func (t *tally) take(do func(r tallyRecord)) {
	var all []tallyRecord
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		taken := s.open
		s.open, s.pending, s.called = s.spare, 0, false
		s.mu.Unlock()
		all = append(all, taken.records...)
		taken.reset()
		s.mu.Lock()
		s.spare = taken
		s.mu.Unlock()
	}
	slices.SortFunc(all, mostEvents)
	for _, r := range all {
		do(r)
	}
}

func mostEvents(a, b tallyRecord) int { return cmp.Compare(b.n, a.n) }

// putBack counts again what was taken.
func (t *tally) putBack(r tallyRecord) {
	s := t.lock(r.key)
	defer s.mu.Unlock()
	s.count(t.limit, r.rule, r.key, r.n, r.at)
}

// sums returns how many events were added, how many of them are not taken yet, and how many
// were dropped. The others were taken, and not put back.
func (t *tally) sums() (added, pending, dropped uint64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		added, pending, dropped = added+s.added, pending+s.pending, dropped+s.dropped
		s.mu.Unlock()
	}
	return added, pending, dropped
}

// A tallyBatch is records, and for each rule where in them its keys are.
type tallyBatch struct {
	index   []map[string]int
	records []tallyRecord
	bytes   int
}

func newTallyBatch(rules int) (b tallyBatch) {
	for range rules {
		b.index = append(b.index, make(map[string]int))
	}
	return b
}

// insert adds a record without events, and returns its index.
func (b *tallyBatch) insert(rule int, key string, at int64) int {
	key = strings.Clone(key)
	i := len(b.records)
	b.records = append(b.records, tallyRecord{rule: rule, key: key, at: at})
	b.index[rule][key] = i
	b.bytes += tallyRecordBytes + len(key)
	return i
}

// reset removes all records, and keeps the memory for others.
func (b *tallyBatch) reset() {
	for _, index := range b.index {
		clear(index)
	}
	clear(b.records)
	b.records, b.bytes = b.records[:0], 0
}

// shrink drops the half of the records with the lowest counts, and returns how many events
// they had.
func (b *tallyBatch) shrink() (lost uint64) {
	slices.SortFunc(b.records, mostEvents)
	keep := len(b.records) / 2
	for i := range b.records[keep:] {
		r := &b.records[keep+i]
		lost += r.n
		b.bytes -= tallyRecordBytes + len(r.key)
		delete(b.index[r.rule], r.key)
		*r = tallyRecord{}
	}
	b.records = b.records[:keep]
	for i := range b.records {
		r := &b.records[i]
		b.index[r.rule][r.key] = i
	}
	return lost
}
