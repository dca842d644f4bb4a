package ratelimit

import (
	"fmt"
	"hash/maphash"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/shard"
)

// Memory is the [Store] of this process: a keyed table for each rule of a Set.
//
// A request is judged and charged with the shards of all its keys locked, one
// for each rule, always in the order of the rules: requests never wait for each
// other in a circle, and no partial charge is ever visible. Keys are compared
// in full. Nothing is on the Go heap but a few large blocks without pointers.
//
// A Memory only grows. For each rule that counts it, a key takes about 40 bytes
// and its own length; for each limit up to 64, and each ban, 50 to 65 bytes with
// up to four times in it, and 8 to 16 bytes for each time when there are more;
// for each sliding limit above 64, some 280 bytes. The blocks that a log has
// outgrown are kept for other keys.
//
// A Memory is safe for concurrent use.
type Memory struct {
	rules []memoryRule
}

// MemoryConfig is how a Memory is built. Its zero value is the default.
type MemoryConfig struct {
	// Resolution is what times are multiples of, when they were floored to
	// it, as replay does with the seconds of a log. A slot of a sliding
	// window then leaves as soon as its last possible time has; where slots
	// are no wider than Resolution, decisions are those of Exact. 0 means
	// nanoseconds, the most is MaxSpan.
	Resolution time.Duration

	// Shards is how many locks each rule's table has, rounded up to a power
	// of two. 0 means 64; 1 suits a Memory used by one goroutine.
	Shards int
}

// NewMemory returns an empty Memory for the rules of s.
func NewMemory(s *Set, c MemoryConfig) (*Memory, error) {
	if c.Resolution < 0 || c.Resolution > MaxSpan {
		return nil, fmt.Errorf("resolution is %v; allowed is 0 (nanoseconds) to %v", c.Resolution, MaxSpan)
	}
	if c.Shards < 0 || c.Shards > 1<<16 {
		return nil, fmt.Errorf("shards is %d; allowed is 0 (the default) to %d", c.Shards, 1<<16)
	}
	m := &Memory{rules: make([]memoryRule, s.Len())}
	seed := maphash.MakeSeed()
	for i := range m.rules {
		m.rules[i].init(s.Rule(i), seed, c)
	}
	return m, nil
}

// A memoryRule is one rule as Memory judges it: a table, and the layout of its
// records.
//
//	word 0     newest time judged, as shard.Stamp has it
//	word 1-4   with a ban: until as a stamp, number of bans, the ban's log
//	word 1|5…  the meter of each limit
type memoryRule struct {
	*Rule
	table  *shard.Table
	limits []meter
	ban    meter // counts for Rule.Ban
}

const (
	wordNewest = 0
	wordUntil  = 1
	wordBans   = 2
	wordBanLog = 3
)

func (mr *memoryRule) init(r *Rule, seed maphash.Seed, c MemoryConfig) {
	mr.Rule = r
	at := wordNewest + 1
	var logs []int
	if r.Ban != nil {
		mr.ban = meter{n: r.Ban.After, span: int64(r.Ban.Span), at: wordBanLog}
		logs = append(logs, max(int(r.Ban.After), 1))
		at = wordBanLog + shard.LogWords
	}
	for _, l := range r.Limits {
		m, bound := newMeter(l, r.Algorithm, at, c.Resolution)
		if bound > 0 {
			m.log = len(logs)
			logs = append(logs, bound)
		}
		at += m.words()
		mr.limits = append(mr.limits, m)
	}
	mr.table = shard.New(seed, shard.Config{Words: at, Logs: logs, Shards: c.Shards})
}

// A probe is one subject's record, its shard locked.
type probe struct {
	*memoryRule
	shard *shard.Shard
	rec   []uint64
}

// Keys returns how many keys the i-th rule of the Set has counted.
func (m *Memory) Keys(i int) int { return m.rules[i].table.Len() }

// Decide implements [Store]. Its only error is ErrKeyTooLong, for a key of
// more than a mebibyte. The cost is one lock and one look-up for each subject.
func (m *Memory) Decide(r *Request) error {
	for i := range r.Subjects {
		if len(r.Subjects[i].Key) > shard.MaxKey {
			return ErrKeyTooLong
		}
	}
	if len(r.Subjects) == 1 {
		m.decideOne(r)
		return nil
	}
	var few [8]probe
	m.decide(r, few[:0])
	return nil
}

// decideOne is decide for one subject.
func (m *Memory) decideOne(r *Request) {
	var one [1]probe
	m.decide(r, one[:0])
}

// decide is Decide for keys that are not too long. probes is memory for it.
func (m *Memory) decide(r *Request, probes []probe) {
	var hash uint64
	var hashed *byte
	now := r.Now
	for i := range r.Subjects {
		subject := &r.Subjects[i]
		probes = append(probes, probe{memoryRule: &m.rules[subject.Outcome.Rule]})
		p := &probes[i]
		// Rules on one key are handed the same bytes, which are hashed once.
		if first := unsafe.SliceData(subject.Key); i == 0 || first != hashed || len(subject.Key) != len(r.Subjects[i-1].Key) {
			hash, hashed = p.table.Hash(subject.Key), first
		}
		p.shard = p.table.Shard(hash)
		p.shard.Lock()
		p.rec = p.shard.FindOrAdd(hash, subject.Key)
		now = max(now, shard.Time(p.rec[wordNewest]))
	}
	judge(probes, r, now)
	for i := range probes {
		probes[i].rec[wordNewest] = shard.Stamp(now)
		probes[i].shard.Unlock()
	}
}
