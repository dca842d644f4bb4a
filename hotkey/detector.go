package hotkey

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
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
// than the newest event of its key is counted at the time of the newest, unless the
// key has been removed meanwhile.
//
// An event costs one look-up for each rule that matches it, and waits only for
// events of the same key. A key takes about 85 bytes, its own length if that is more
// than 15, and 8 to 16 bytes for each of its times within the span, up to T, if
// there are more than three. Of a key longer than 256 bytes only a digest of 32
// bytes is kept, an HMAC-SHA-256 with a secret of the Detector; to count it costs
// about half a nanosecond per byte. It is counted as exactly, and its Edge has the
// full key.
//
// Memory never exceeds the budget. Keys that have no event in the span and were
// never hot are removed as new keys come. When the budget is spent, keys with few
// events in the span are evicted first, and hot keys last. An evicted key begins
// again at 0: it may become hot later than it should, never earlier. If it was hot,
// it may be reported again during its hold, with First set. [Detector.Stats] says how
// often keys were evicted.
//
// A Detector is safe for concurrent use. The zero Detector is not usable; call
// [NewDetector].
type Detector struct {
	set    *Set
	tables []*table // one for each rule
	budget *keytable.Budget
	start  time.Time
	keys   sync.Pool                // *[]byte, scratch for a key
	secret atomic.Pointer[[32]byte] // of the digests of long keys
}

// DetectorConfig configures a [Detector]. Its zero value is the default.
type DetectorConfig struct {
	// Budget bounds the memory of all rules together, in bytes. 0 means
	// DefaultBudget, and NoBudget that memory may grow without bound.
	Budget int64
}

const (
	// DefaultBudget is the Budget by default: 64 MiB.
	DefaultBudget = 64 << 20

	// NoBudget is the Budget of a Detector that evicts no key.
	NoBudget = -1
)

// An Edge is a key that becomes hot.
type Edge struct {
	Rule  string    // its name
	Key   string    // as the Key of the rule made it
	Time  time.Time // of the event that made it hot
	Until time.Time // the end of the hold
	First bool      // the key was not hot under this rule before
}

const (
	maxWhole = 256       // the longest key, in bytes, of which no digest is made
	maxKey   = 1<<20 - 1 // the longest key
)

// NewDetector returns a Detector of the rules of s that has counted nothing.
func NewDetector(s *Set, c DetectorConfig) (*Detector, error) {
	if c.Budget < NoBudget {
		return nil, fmt.Errorf("hotkey: budget: %d: must be a number of bytes, 0 (%d) or NoBudget", c.Budget, DefaultBudget)
	}
	limit, reserve := cmp.Or(c.Budget, DefaultBudget), int64(0)
	if limit == NoBudget {
		limit = unbounded
	} else if slices.ContainsFunc(s.rules, func(r Rule) bool { return r.Threshold > inlineTimes+1 }) {
		reserve = limit / logShare
	}
	d := &Detector{set: s, budget: keytable.NewBudget(limit), start: time.Now()}
	d.secret.Store(new([32]byte))
	rand.Read(d.secret.Load()[:]) // never fails
	d.keys.New = func() any { return new([]byte) }
	seed := maphash.MakeSeed()
	for i := range s.rules {
		t, err := newTable(seed, &s.rules[i], d.budget, reserve)
		if err != nil {
			return nil, err
		}
		d.tables = append(d.tables, t)
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
		if edge, ok := d.count(i, t, viewed(key)); ok {
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
	edge, hot = d.count(i, t, key)
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
	table, stored := d.tables[i], d.stored(key)
	r, state := table.Lock(table.Hash(stored), stored)
	if state != keytable.Found {
		return false
	}
	defer r.Unlock()
	w := r.Words()
	return max(keytable.Nanos(t, MaxSpan), table.log.Newest(w[wordLog:])) < keytable.Time(w[wordUntil])
}

// Stats says how much a [Detector] keeps for one rule, and how often it had no memory.
type Stats struct {
	Keys  int   // keys counted
	Bytes int64 // memory of the Detector, all its rules together

	Evicted uint64 // keys that were evicted because the budget was spent
	Refused uint64 // events of new keys that were not counted, there being no key to evict
	Lost    uint64 // events that ceased to count early, there being no memory for all times of their key
}

// Stats returns the statistics of a rule, zero for an unknown rule.
func (d *Detector) Stats(rule string) Stats {
	i, ok := d.set.names[rule]
	if !ok {
		return Stats{}
	}
	t := d.tables[i]
	gone := t.Stats()
	return Stats{Keys: t.Len(), Bytes: d.budget.Used(), Evicted: gone.Evicted, Refused: gone.Refused, Lost: t.lost.Load()}
}

// viewed returns key as a string, which is valid as long as key does not change.
func viewed(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// stored returns what is kept of key: the key itself or its digest.
func (d *Detector) stored(key string) string {
	if len(key) <= maxWhole {
		return key
	}
	return string(keytable.LongKey(d.secret.Load(), unsafe.Slice(unsafe.StringData(key), len(key))))
}

func (d *Detector) now() time.Time { return d.start.Add(time.Since(d.start)) }

func (d *Detector) count(rule int, t time.Time, key string) (Edge, bool) {
	if len(key) > maxKey {
		return Edge{}, false
	}
	table, stored := d.tables[rule], d.stored(key)
	now := keytable.Nanos(t, MaxSpan)
	rec, ok := table.add(table.Hash(stored), stored, now)
	if !ok {
		return Edge{}, false
	}
	edge, hot, short := table.count(rec, &d.set.rules[rule], now)
	rec.Unlock()
	if short && table.lost.Add(1)%sweepEvery == 0 {
		table.Sweep()
	}
	if hot {
		edge.Key = strings.Clone(key)
	}
	return edge, hot
}

// count counts an event of the key of rec at now. It returns the edge, without its
// key, if the key becomes hot. short says that there was no memory for one more time:
// the oldest has ceased to count.
func (t *table) count(rec keytable.Record, r *Rule, now int64) (edge Edge, hot, short bool) {
	w := rec.Words()
	log := w[wordLog:]
	if t.log.Len(log) > 0 {
		now = max(now, t.log.Newest(log))
	}
	n := t.log.Expire(log, now-t.span)
	short = !t.log.Reserve(log, 1)
	t.log.Add(log, now)
	if n+1 < int(r.Threshold) || now < keytable.Time(w[wordUntil]) {
		return Edge{}, false, short
	}
	edge = Edge{Rule: r.Name, Time: time.Unix(0, now), First: w[wordUntil] == 0}
	until := now + int64(r.hold())
	edge.Until, w[wordUntil] = time.Unix(0, until), keytable.Stamp(until)
	return edge, true, short
}
