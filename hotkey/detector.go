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

// A Detector counts events under the rules of a [Set] and reports when a key
// becomes hot. Most callers need [Detector.Add] alone.
//
// It is exact: the T-th event of a key in (t-span, t] returns an [Edge], and no
// other event does until the hold is over. Add and AddKey count an event now,
// AddAt and AddKeyAt at a time that the caller has. Now is the wall time when the
// Detector was made plus the time that has passed since. An event that is earlier
// than the newest event of its key is counted at the time of the newest.
//
// An event costs one lock and one look-up for each rule that matches it. A key
// takes about 60 bytes, its own length, and 8 bytes for each of its last T times
// within the span. Of a key longer than 256 bytes only a digest of 32 bytes is
// kept, an HMAC-SHA-256 with a secret of the Detector; to count it costs about half
// a nanosecond per byte. It is counted as exactly, and its Edge has the full key.
//
// The memory of a Detector only grows. Do not count by keys that strangers can
// make up, and watch [Detector.Stats].
//
// A Detector is safe for concurrent use. The zero Detector is not usable; call
// [NewDetector].
type Detector struct {
	set    *Set
	tables []*keytable.Sharded // one for each rule
	start  time.Time
	keys   sync.Pool                // *[]byte, scratch for a key
	secret atomic.Pointer[[32]byte] // of the digests of long keys
}

// DetectorConfig configures a [Detector]. Its zero value is the default.
type DetectorConfig struct {
	// Shards is the number of locks of each rule's table, rounded up to a power
	// of two. 0 means 64. Use 1 for a Detector that one goroutine uses.
	Shards int
}

// An Edge is a key that becomes hot.
type Edge struct {
	Rule  string    // its name
	Key   string    // as the Key of the rule made it
	Time  time.Time // of the event that made it hot
	Until time.Time // the end of the hold
	First bool      // the key was not hot under this rule before
}

// A record is the newest time of the key, the end of its hold, and its log.
// Times are stored with the sign bit turned, so that the zero word is earliest.
const (
	wordNewest = 0
	wordUntil  = 1
	wordLog    = 2
	words      = wordLog + keytable.LogWords
)

// maxWhole is the longest key, in bytes, of which no digest is made.
const maxWhole = 256

// NewDetector returns a Detector of the rules of s that has counted nothing.
func NewDetector(s *Set, c DetectorConfig) (*Detector, error) {
	if c.Shards < 0 || c.Shards > 1<<16 {
		return nil, fmt.Errorf("hotkey: shards: %d: must be 0 (the default) to %d", c.Shards, 1<<16)
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

// Set returns the rules of d.
func (d *Detector) Set() *Set { return d.set }

// Add counts e now and appends the edges to dst, in the order of the rules. It
// does not read e.Time. It allocates only for an edge and for a key of more than
// 256 bytes. A key of 1 MiB or more is not counted.
func (d *Detector) Add(e *match.Event, dst []Edge) []Edge { return d.AddAt(d.now(), e, dst) }

// AddAt counts e at time t and appends the edges to dst; see [Detector.Add].
// Times before 1720 and after 2220 count as the nearest time of that range.
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

// AddKey counts an event of key now under one rule, whatever the rule's Key and
// When, and reports the edge if the key becomes hot. It returns an error if no
// rule has that name.
func (d *Detector) AddKey(rule, key string) (edge Edge, hot bool, err error) {
	return d.AddKeyAt(d.now(), rule, key)
}

// AddKeyAt counts an event of key at time t under one rule; see
// [Detector.AddKey].
func (d *Detector) AddKeyAt(t time.Time, rule, key string) (edge Edge, hot bool, err error) {
	i, ok := d.set.names[rule]
	if !ok {
		return Edge{}, false, fmt.Errorf("hotkey: unknown rule %q", rule)
	}
	edge, hot = d.count(i, t, viewed(key))
	return edge, hot, nil
}

// Hot reports whether key is hot now under a rule. Under an unknown rule no key is
// hot.
func (d *Detector) Hot(rule, key string) bool { return d.HotAt(d.now(), rule, key) }

// HotAt reports whether key is hot at time t under a rule. As with events, a t
// earlier than the newest event of the key is taken as the time of that event.
func (d *Detector) HotAt(t time.Time, rule, key string) bool {
	i, ok := d.set.names[rule]
	if !ok {
		return false
	}
	b := d.stored(viewed(key))
	table := d.tables[i]
	hash := table.Hash(b)
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	rec := s.Find(hash, b)
	return rec != nil && max(keytable.Nanos(t, MaxSpan), keytable.Time(rec[wordNewest])) < keytable.Time(rec[wordUntil])
}

// Stats are the size of what a [Detector] keeps for one rule.
type Stats struct {
	Keys  int   // keys counted
	Bytes int64 // memory of these keys and their times
}

// Stats returns the size of what d keeps for a rule, zero for an unknown rule.
func (d *Detector) Stats(rule string) Stats {
	i, ok := d.set.names[rule]
	if !ok {
		return Stats{}
	}
	return Stats{Keys: d.tables[i].Len(), Bytes: d.tables[i].Bytes()}
}

// viewed returns the bytes of key, which must not be written to.
func viewed(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

// stored returns what is kept of key: the key itself or its digest.
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
	return Edge{Rule: r.Name, Key: string(key), Time: time.Unix(0, now), Until: time.Unix(0, until), First: first}, true
}
