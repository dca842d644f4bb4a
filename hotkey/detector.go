package hotkey

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/match"
)

// A Detector counts events under a list of rules and reports when a key
// becomes hot. Most callers need [Detector.Add] alone.
//
// A key is hot when the lower bound of its count reaches the threshold. Up to
// a threshold of 128, and for a rule that is Exact, the count is exact: the T-th event of a
// key in (t-span, t] returns an [Edge], and no other event does until the hold is over.
// Above, events are counted in slots of a sixtieth of the span or less, and the lower
// bound does not include the oldest slot if a part of it has left the span. A key is
// therefore never hot too early. It is hot at the latest when it has T events in the
// last 59/60 of the span, if there is memory for its slots.
//
// Add counts an event now, AddAt counts several at a given time; [Detector.Rule] returns a
// handle that counts keys without an event. Now is the wall time when the Detector was made
// plus the time since. An event earlier than the newest event of its key, or than that
// event's slot, is counted at the time of the newest. An event of a new key is counted no
// earlier than the time at which idle keys were last removed. So the time at which an event
// is counted differs from its own by at most its lateness.
//
// An event costs one look-up for each rule that matches it, and waits only for events
// of the same key. A key takes about 85 bytes, and its own length if that is more than
// 15. With more than three events in the span it takes 8 bytes for each of them where
// times are kept, up to 128 or T of them, and else 250 bytes. For a key longer than 256
// bytes only a digest of 32 bytes is kept, an HMAC-SHA-256 with a secret of the
// Detector; to count it costs about half a nanosecond per byte. It is counted alike,
// and its Edge has the full key.
//
// Memory never exceeds the budget. Keys that have no event in the span and were
// never hot are removed as new keys come. When the budget is spent, keys with few
// events in the span are evicted first, and hot keys last. An evicted key begins
// again with a lower bound of 0, so it may become hot later than it should, never
// earlier; its upper bound includes the events that it may have had before. In a flood of keys that
// come once, a key is found whose second event comes before such keys are evicted: the
// default budget of one rule keeps about the last 350,000 of them. If it was hot, it
// may be reported again during its hold, with First set. [RuleDetector.Stats]
// counts how often keys were evicted.
//
// A Detector is safe for concurrent use. The zero Detector is not usable; call [New] or
// [NewDetector].
type Detector struct {
	rules  []Rule
	conds  []match.Condition // one for each rule
	tables []*table          // one for each rule
	judges []RuleDetector    // one for each rule
	names  map[string]int    // the index of each rule
	budget *keytable.Budget
	start  time.Time
	began  int64                    // start in nanoseconds since 1970
	secret atomic.Pointer[[32]byte] // of the digests of long keys
	caches caches
}

// DetectorConfig configures a [Detector]. Its zero value is the default.
type DetectorConfig struct {
	// Budget bounds the memory of all rules together, in bytes. 0 means 64 MiB, and
	// NoBudget no bound.
	Budget int64
}

const defaultBudget = 64 << 20

// NoBudget is the Budget of a Detector that evicts no key.
const NoBudget = -1

// An Edge is a key that becomes hot.
type Edge struct {
	Rule  string    // its name
	Key   string    // as the Key of the rule made it
	Time  time.Time // of the event that made it hot
	Until time.Time // the end of the hold
	First bool      // the key was not hot under this rule before

	// Lo and Hi are the bounds of the number of events in the span. Hi is
	// [math.MaxUint64] if it is unknown: when times are kept, and there were
	// more events than 128 and T, or than fit into memory.
	Lo, Hi uint64
}

// A KeyCount has the bounds of a key's count in a span.
type KeyCount struct {
	Key    string
	Lo, Hi uint64    // as in an [Edge]
	Until  time.Time // the end of the key's last hold; zero if it was never hot
}

const (
	maxSpan  = limit.MaxSpan
	maxWhole = 256       // the longest key, in bytes, that is kept without a digest
	maxKey   = 1<<20 - 1 // the longest key
)

// New returns a Detector of rules with the default budget. The error is that of [Validate].
func New(rules ...Rule) (*Detector, error) { return NewDetector(rules, DetectorConfig{}) }

// NewDetector returns a Detector that has counted nothing. Edges are in the order of rules.
// The error is that of [Validate].
func NewDetector(rules []Rule, c DetectorConfig) (*Detector, error) {
	if err := Validate(rules...); err != nil {
		return nil, err
	}
	if c.Budget < NoBudget {
		return nil, fmt.Errorf("hotkey: budget: %d: must be a number of bytes, 0 (%d) or NoBudget", c.Budget, defaultBudget)
	}
	bound, reserve, sketches := cmp.Or(c.Budget, defaultBudget), int64(0), int64(0)
	if bound == NoBudget {
		bound = unbounded
	} else {
		reserve, sketches = bound/logShare, bound/sketchShare/int64(max(len(rules), 1))
	}
	start := time.Now()
	d := &Detector{
		names: make(map[string]int, len(rules)), budget: keytable.NewBudget(bound),
		start: start, began: keytable.Nanos(start, maxSpan),
	}
	d.secret.Store(new([32]byte))
	rand.Read(d.secret.Load()[:]) // never fails
	seed := maphash.MakeSeed()
	for i := range rules {
		d.rules = append(d.rules, rules[i].clone())
	}
	for i := range d.rules {
		r := &d.rules[i]
		t, err := newTable(seed, r, d.budget, reserve, sketches)
		if err != nil {
			return nil, err
		}
		cond, _ := r.When.Compile() // which is valid
		d.names[r.Name], d.conds, d.tables = i, append(d.conds, cond), append(d.tables, t)
		d.judges = append(d.judges, RuleDetector{d, t, i})
	}
	return d, nil
}

// Rules returns the rules of d, which must not be changed.
func (d *Detector) Rules() []Rule { return d.rules }

// Add counts e now and appends the edges to dst, in the order of the rules. It
// does not read e.Time. It allocates only for an edge and for a key of more than
// 256 bytes. A key of 1 MiB or more is not counted.
func (d *Detector) Add(e *match.Event, dst []Edge) []Edge { return d.add(unread, e, 1, dst) }

// AddAt counts n events like e at time t and appends the edges to dst; see [Detector.Add].
// Times before 1720 and after 2220 count as the nearest time of that range. If times are
// kept, each of the n events is stored, up to 128 or T of them: a hundred cost about twice
// as much as in slots.
func (d *Detector) AddAt(t time.Time, e *match.Event, n uint64, dst []Edge) []Edge {
	return d.add(keytable.Nanos(t, maxSpan), e, n, dst)
}

func (d *Detector) add(now int64, e *match.Event, n uint64, dst []Edge) []Edge {
	var buf [maxWhole]byte
	for i := range d.rules {
		if !d.conds[i].Holds(e) {
			continue
		}
		b, ok := d.rules[i].Key.Append(buf[:0], e)
		if !ok {
			continue
		}
		var edge Edge
		c, _ := d.count(i, now, viewed(b), n, &edge)
		if now = c.now; c.hot {
			dst = append(dst, edge)
		}
	}
	return dst
}

// Errors of a [RuleDetector] for keys that cannot be counted or made hot.
var (
	// ErrNever is the error for a key that is never counted under the rule.
	ErrNever = errors.New("hotkey: the key is never counted under this rule")

	// ErrNoMemory is the error for a new key that does not fit into memory.
	ErrNoMemory = errors.New("hotkey: no memory for another key")

	errKeyTooLong = fmt.Errorf("hotkey: the key is too long (max %d bytes)", maxKey)
)

// reserved returns the bytes of the budget for the counts of evicted keys that are not
// used yet.
func (d *Detector) reserved() (n int64) {
	for _, t := range d.tables {
		if t.budget.Limit() != unbounded && t.evicted.Load() == nil {
			n += sketch.Bytes(t.plan)
		}
	}
	return n
}

// viewed returns key as a string, which is valid as long as key does not change.
func viewed(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// stored returns the stored form of key: the key itself or its digest, or "" for a key that
// is not counted.
func (d *Detector) stored(key string) string {
	if len(key) > maxKey {
		return ""
	}
	if len(key) <= maxWhole {
		return key
	}
	return string(keytable.LongKey(d.secret.Load(), []byte(key))) // a copy, so that other keys need not be on the heap
}

// unread is a time that has not been read from the clock yet.
const unread = math.MinInt64

// now returns the time in nanoseconds since 1970.
func (d *Detector) now() int64 { return d.began + int64(time.Since(d.start)) }

// Now returns the time of d: the wall time when d was made plus the time since.
func (d *Detector) Now() time.Time { return nanos(d.now()) }

func nanos(t int64) time.Time { return time.Unix(0, t) }

// hotUntil returns the end of the last hold of key; it is in the past if there was none.
func (t *table) hotUntil(d *Detector, key string) int64 {
	if always, ok := t.listing(key); ok || len(key) > maxKey {
		if always {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	stored := d.stored(key)
	r, state := t.Lock(t.Hash(stored), stored)
	if state != keytable.Found {
		return math.MinInt64
	}
	defer r.Unlock()
	return keytable.Time(r.Words()[wordUntil])
}
