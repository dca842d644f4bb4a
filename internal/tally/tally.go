// Package tally adds up counts by rule and key until they are sent elsewhere.
package tally

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

const (
	shards = 16

	// recordBytes is what a key takes beside its own bytes: a record, and its places in
	// an index that is at most half full.
	recordBytes = int(unsafe.Sizeof(record{})) + 4*4
)

// A Tally adds up events by rule and key until they are taken: each event is taken once, or
// dropped and counted as such. Its memory is bounded. When it is spent, the half of the keys
// with the lowest counts is dropped, so that those with most events are kept.
//
// An Add locks one of 16 shards, and does not allocate once the shard has grown. A Tally is
// safe for concurrent use. Make one with [New].
type Tally struct {
	seed   maphash.Seed
	most   int      // bytes of a shard
	early  []uint64 // by rule: the count of a key from which urgent is called
	urgent func()
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	open    *batch
	spare   *batch // empty
	added   uint64 // events, in all
	dropped uint64 // those of keys that were dropped
	pending uint64 // those in open
	called  bool   // urgent was called since open was taken
	_       [48]byte
}

// New returns an empty Tally that keeps at most so many bytes of keys and counts, and as
// many again while they are taken. It calls urgent when a key has as many events as early
// has for its rule: once until the key's shard is taken.
func New(most int, early []uint64, urgent func()) *Tally {
	t := &Tally{seed: maphash.MakeSeed(), most: most / shards, early: early, urgent: urgent}
	for i := range t.shards {
		t.shards[i].open, t.shards[i].spare = &batch{}, &batch{}
	}
	return t
}

// Add counts n events of a key, at a time in nanoseconds. It copies the key. quiet says that
// they are never urgent.
func (t *Tally) Add(rule int, key string, n uint64, at int64, quiet bool) {
	hash := t.hash(rule, key)
	s := t.lock(hash)
	s.added += n
	now := s.count(t, hash, rule, key, n, at)
	call := !quiet && now >= t.early[rule] && !s.called
	s.called = s.called || call
	s.mu.Unlock()
	if call {
		t.urgent()
	}
}

func (t *Tally) hash(rule int, key string) uint64 {
	return (maphash.String(t.seed, key) ^ uint64(rule)) * 0x9e3779b97f4a7c15
}

// lock locks a shard for a key: that of its hash, or if another goroutine has it, one beside
// it, so that goroutines that count one key do not wait for each other.
func (t *Tally) lock(hash uint64) *shard {
	home := hash >> 60
	for i := range uint64(3) {
		if s := &t.shards[(home+i)%shards]; s.mu.TryLock() {
			return s
		}
	}
	s := &t.shards[home]
	s.mu.Lock()
	return s
}

// count adds to the record of a key, and returns its count.
//
// REQUIRES: s.mu.
func (s *shard) count(t *Tally, hash uint64, rule int, key string, n uint64, at int64) uint64 {
	r := s.open.find(hash, rule, key)
	if r == nil {
		if s.open.bytes()+recordBytes+len(key) > t.most {
			gone := s.open.shrink()
			s.dropped += gone
			s.pending -= gone
		}
		if s.open.bytes()+recordBytes+len(key) > t.most {
			s.dropped += n // it alone is too large
			return 0
		}
		r = s.open.insert(hash, rule, key, at)
	}
	r.n += n
	r.at = min(r.at, at)
	s.pending += n
	return r.n
}

// A Record is how many events of a key were counted under a rule.
type Record struct {
	Rule int
	Key  string // valid until the function returns that gets it
	N    uint64
	At   int64 // the earliest of their times
}

// Take passes what was counted to do, which may put it back. Keys with more events come first,
// by powers of two: if not all can be sent, it is those with fewest that wait. One goroutine
// at a time may take.
func (t *Tally) Take(do func(r Record)) {
	var taken [shards]*batch
	var classes [65]int // of numbers of events, by their lengths in bits
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		taken[i] = s.open
		s.open, s.pending, s.called = s.spare, 0, false
		s.mu.Unlock()
		for j := range taken[i].records {
			classes[bits.Len64(taken[i].records[j].n)]++
		}
	}
	for class, n := range slices.Backward(classes[:]) {
		for i := 0; n > 0; i++ {
			n -= taken[i].take(class, do)
		}
	}
	for i := range t.shards {
		s := &t.shards[i]
		taken[i].reset()
		s.mu.Lock()
		s.spare = taken[i]
		s.mu.Unlock()
	}
}

// take passes the records of a class to do, and returns how many there are.
func (b *batch) take(class int, do func(r Record)) (n int) {
	for i := range b.records {
		if r := &b.records[i]; bits.Len64(r.n) == class {
			do(Record{int(r.rule), b.key(r), r.n, r.at})
			n++
		}
	}
	return n
}

// PutBack counts again what was taken.
func (t *Tally) PutBack(r Record) {
	hash := t.hash(r.Rule, r.Key)
	s := t.lock(hash)
	defer s.mu.Unlock()
	s.count(t, hash, r.Rule, r.Key, r.N, r.At)
}

// Sums returns how many events were added, how many of them are not taken yet, and how many
// were dropped. The others were taken, and not put back.
func (t *Tally) Sums() (added, pending, dropped uint64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		added, pending, dropped = added+s.added, pending+s.pending, dropped+s.dropped
		s.mu.Unlock()
	}
	return added, pending, dropped
}

// A batch is records by key: an open-addressing table of indexes, over records and keys in
// the order in which they came.
type batch struct {
	records []record
	index   []uint32 // 1 + an index of records, or 0
	keys    []byte
}

// A record is the count of a key under a rule.
type record struct {
	hash uint64
	n    uint64
	at   int64 // nanoseconds since 1970
	rule uint32
	from uint32 // of batch.keys
	size uint32
}

func (b *batch) key(r *record) string {
	return unsafe.String(unsafe.SliceData(b.keys[r.from:]), int(r.size))
}

func (b *batch) bytes() int { return len(b.records)*recordBytes + len(b.keys) }

func (b *batch) find(hash uint64, rule int, key string) *record {
	if len(b.index) == 0 {
		return nil
	}
	for i := b.slot(hash); b.index[i] != 0; i = b.next(i) {
		if r := &b.records[b.index[i]-1]; r.hash == hash && r.rule == uint32(rule) && b.key(r) == key {
			return r
		}
	}
	return nil
}

func (b *batch) slot(hash uint64) int { return int(hash>>8) & (len(b.index) - 1) }

func (b *batch) next(i int) int { return (i + 1) & (len(b.index) - 1) }

func (b *batch) insert(hash uint64, rule int, key string, at int64) *record {
	if 2*(len(b.records)+1) > len(b.index) {
		b.index = make([]uint32, max(16, 2*len(b.index)))
		b.reindex()
	}
	b.records = append(b.records, record{hash: hash, at: at, rule: uint32(rule), from: uint32(len(b.keys)), size: uint32(len(key))})
	b.keys = append(b.keys, key...)
	b.place(len(b.records) - 1)
	return &b.records[len(b.records)-1]
}

func (b *batch) place(record int) {
	i := b.slot(b.records[record].hash)
	for b.index[i] != 0 {
		i = b.next(i)
	}
	b.index[i] = uint32(record + 1)
}

func (b *batch) reindex() {
	clear(b.index)
	for i := range b.records {
		b.place(i)
	}
}

func (b *batch) reset() {
	b.records, b.keys = b.records[:0], b.keys[:0]
	clear(b.index)
}

// shrink drops half of the records, those with the lowest counts, by powers of two, and
// returns how many events they had.
func (b *batch) shrink() (gone uint64) {
	var classes [65]int
	for i := range b.records {
		classes[bits.Len64(b.records[i].n)]++
	}
	drop := (len(b.records) + 1) / 2
	class, below := 0, 0
	for below+classes[class] < drop {
		below += classes[class]
		class++
	}
	some := drop - below // how many of this class
	kept, end := 0, uint32(0)
	for _, r := range b.records {
		c := bits.Len64(r.n)
		if c < class || c == class && some > 0 {
			if c == class {
				some--
			}
			gone += r.n
			continue
		}
		copy(b.keys[end:], b.keys[r.from:r.from+r.size])
		r.from, end = end, end+r.size
		b.records[kept] = r
		kept++
	}
	b.records, b.keys = b.records[:kept], b.keys[:end]
	b.reindex()
	return gone
}
