package hotkey

import (
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/match"
)

// A Detector counts events under a [Set] and says when a key becomes hot,
// exactly: the T-th event of a key in (t-span, t] yields the edge, and no other
// event does until the hold is over.
//
// Verbs come in pairs: Add counts an event now, AddAt at a time that the caller
// has. Now is the wall clock as it stood when the Detector was made plus the
// time that has passed since. An event earlier than the newest one of its key
// is counted at that newest time.
//
// Each event costs one lock and one look-up for each rule that matches it. A key
// takes about 60 bytes, its own length and 8 bytes for each of its last T times
// within the span. A key of more than 256 bytes is kept as a digest of 32 bytes, an
// HMAC-SHA-256 with a secret of the Detector: it is counted as exactly, and its Edge
// has it in full. To count it costs half a nanosecond or so for each of its bytes.
//
// A Detector only grows: bound the number of keys by rules that strangers cannot
// make up keys for, and watch [Detector.Bytes].
//
// A Detector is safe for concurrent use. Its zero value is not usable; call
// NewDetector.
type Detector struct {
	set    *Set
	tables []*keytable.Sharded // one for each rule
	start  time.Time
	keys   sync.Pool                // *[]byte, scratch for a key
	secret atomic.Pointer[[32]byte] // of long keys' digests
}

// DetectorConfig is how a Detector is built. Its zero value is the default.
type DetectorConfig struct {
	// Shards is how many locks each rule's table has, rounded up to a power
	// of two. 0 means 64; 1 suits a Detector used by one goroutine.
	Shards int
}

// An Edge is a key that becomes hot.
type Edge struct {
	Rule  int       // the rule's number in the Set
	Key   string    // as the rule's Key made it
	Time  time.Time // of the event that made it hot
	Until time.Time // the end of the hold
	First bool      // it has not been hot under this rule before
}

// A record is the newest time of the key, the end of its hold, and its log.
// Times are stored with the sign bit turned, so that the zero word is earliest.
const (
	wordNewest = 0
	wordUntil  = 1
	wordLog    = 2
	words      = wordLog + keytable.LogWords
)

// maxWhole is the longest key that is kept as it is, in bytes.
const maxWhole = 256

// NewDetector returns a Detector of s's rules that has seen nothing.
func NewDetector(s *Set, c DetectorConfig) (*Detector, error) {
	if c.Shards < 0 || c.Shards > 1<<16 {
		return nil, fmt.Errorf("shards is %d; allowed is 0 (the default) to %d", c.Shards, 1<<16)
	}
	d := &Detector{set: s, start: time.Now()}
	d.secret.Store(new([32]byte))
	rand.Read(d.secret.Load()[:]) // never fails
	d.keys.New = func() any { return new([]byte) }
	seed := maphash.MakeSeed()
	for i := range s.rules {
		d.tables = append(d.tables, keytable.NewSharded(seed, keytable.ShardedConfig{
			Words: words, Logs: []int{int(s.rules[i].Threshold)}, Shards: c.Shards,
		}))
	}
	return d, nil
}

// Set returns the rules that d counts under.
func (d *Detector) Set() *Set { return d.set }

// Add counts e now and appends the edges that it makes, in the order of the
// rules, to dst. It is short for AddAt(now, e, dst).
func (d *Detector) Add(e *match.Event, dst []Edge) []Edge { return d.AddAt(d.now(), e, dst) }

// AddAt counts e at time t and appends the edges that it makes, in the order
// of the rules, to dst. It does not read e.Time, and allocates only for an edge and
// for a key of more than 256 bytes.
// A key of a mebibyte or more is not counted. Times are good from 1720 to
// 2220; what lies beyond counts at the end of that range.
func (d *Detector) AddAt(t time.Time, e *match.Event, dst []Edge) []Edge {
	scratch := d.keys.Get().(*[]byte)
	defer d.keys.Put(scratch)
	for i := range d.set.rules {
		if !d.set.conds[i].Holds(e) {
			continue
		}
		key, ok := d.set.rules[i].Key.Append((*scratch)[:0], e)
		*scratch = key
		if !ok {
			continue
		}
		if edge, ok := d.count(i, t, key); ok {
			dst = append(dst, edge)
		}
	}
	return dst
}

// AddKeyAt counts an event at time t that the caller has the key of, under rule
// number rule, whatever its key and condition, and reports the edge if it makes
// one.
func (d *Detector) AddKeyAt(t time.Time, rule int, key string) (Edge, bool) {
	return d.count(rule, t, unsafe.Slice(unsafe.StringData(key), len(key))) // only read
}

// HotAt reports whether key is hot at time t under rule number rule. Like an
// event, a t earlier than the newest event of the key is taken as that time.
func (d *Detector) HotAt(t time.Time, rule int, key string) bool {
	b := d.stored(unsafe.Slice(unsafe.StringData(key), len(key))) // only read
	table := d.tables[rule]
	hash := table.Hash(b)
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	rec := s.Find(hash, b)
	return rec != nil && max(keytable.Nanos(t, MaxSpan), keytable.Time(rec[wordNewest])) < keytable.Time(rec[wordUntil])
}

// Keys returns how many keys rule number rule has counted.
func (d *Detector) Keys(rule int) int { return d.tables[rule].Len() }

// Bytes returns how much memory the keys of rule number rule and their times take.
func (d *Detector) Bytes(rule int) int64 { return d.tables[rule].Bytes() }

// stored returns what stands for key in the tables.
func (d *Detector) stored(key []byte) []byte {
	if len(key) <= maxWhole {
		return key
	}
	return keytable.LongKey(d.secret.Load(), key)
}

func (d *Detector) now() time.Time { return d.start.Add(time.Since(d.start)) }

func (d *Detector) count(rule int, t time.Time, key []byte) (Edge, bool) {
	if len(key) > keytable.MaxShardedKey {
		return Edge{}, false
	}
	r, table, stored := &d.set.rules[rule], d.tables[rule], d.stored(key)
	hash := table.Hash(stored)
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	rec := s.FindOrAdd(hash, stored)
	now := max(keytable.Nanos(t, MaxSpan), keytable.Time(rec[wordNewest]))
	rec[wordNewest] = keytable.Stamp(now)
	logs, log := s.Logs(0), keytable.Log(rec[wordLog:])
	n := logs.Expire(log, now-int64(r.Span))
	logs.Add(log, now)
	if n+1 < int(r.Threshold) || now < keytable.Time(rec[wordUntil]) {
		return Edge{}, false
	}
	first := rec[wordUntil] == 0
	until := now + int64(r.hold())
	rec[wordUntil] = keytable.Stamp(until)
	return Edge{Rule: rule, Key: string(key), Time: time.Unix(0, now), Until: time.Unix(0, until), First: first}, true
}
