package hotkey

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/limit"
)

// A table has the keys of one rule of a Detector: for each the end of the last hold, in the
// form of keytable.Stamp and 0 if the key was never hot, and a window of its events. A flagged record has the digest of its key.
type table struct {
	*keytable.Table
	rule   *Rule
	budget *keytable.Budget
	window limit.Counter
	blocks *keytable.Blocks
	view   *keytable.Blocks // of a copy of a window
	span   int64

	// listed are the keys that are always hot, true, or never counted, false; nil if there
	// are none. The map does not change: list makes another.
	listed atomic.Pointer[map[string]bool]

	forward atomic.Pointer[forward] // or nil

	newest atomic.Int64 // about the newest time at which a key was added

	// expired is the newest time at which a key with events was removed because all
	// had left its window. A key that is added is counted at expired at the earliest:
	// if it is one of these, its window is as empty then as it was.
	expired atomic.Int64

	counts [1 << stripeBits]counts // by goroutine, see stripe

	// evicted counts the events of keys that were evicted within their span, so that
	// a key that comes back has an upper bound. It is made when it is needed, of
	// memory that is taken from the budget at the start.
	evicted atomic.Pointer[sketch.Window]
	plan    sketch.Config
	once    sync.Once // makes it
}

// counts are the statistics of some goroutines.
type counts struct {
	events, late, lost atomic.Uint64
	_                  [40]byte // one cache line
}

const stripeBits = 6

func (t *table) stripe() *counts { return &t.counts[ring.Stripe(stripeBits)] }

const (
	wordUntil  = 0
	wordWindow = 1

	// logShare is which share of the budget is kept for windows that do not fit a
	// record, and sketchShare for the counts of evicted keys.
	logShare    = 2
	sketchShare = 16

	// sweepEvery is how many times without memory move the sweep on, which looks at
	// some hundred keys.
	sweepEvery = 256

	unbounded = 1 << 62 // the limit of NoBudget
)

// windowOf returns the window of r.
func windowOf(r *Rule) (limit.Counter, error) {
	c := limit.Config{Algorithm: limit.Exact, N: max(r.Threshold, limit.SlidingExact), Span: r.Span}
	if !r.exact() {
		c.Algorithm, c.N = limit.Sliding, math.MaxUint32 // counts of 32 bits
	}
	return limit.New(c)
}

// newTable returns the empty table of r. Tables of one seed agree on hashes. It takes
// sketchBytes from the budget for the counts of evicted keys.
func newTable(seed maphash.Seed, r *Rule, budget *keytable.Budget, reserve, sketchBytes int64) (*table, error) {
	t := &table{rule: r, budget: budget, span: int64(r.Span)}
	listed := make(map[string]bool)
	for _, key := range r.Always {
		listed[key] = true
	}
	for _, key := range r.Never {
		listed[key] = false
	}
	t.setListed(nil, listed)
	t.newest.Store(math.MinInt64)
	t.expired.Store(math.MinInt64)
	var err error
	if t.window, err = windowOf(r); err != nil {
		return nil, fmt.Errorf("hotkey: %w", err)
	}
	t.blocks = t.window.Blocks(budget)
	t.view = t.blocks.View()
	t.Table, err = keytable.New(seed, keytable.Config{
		Words: wordWindow + t.window.Words(), Budget: budget, Reserve: reserve, Policy: t,
		Gather: func(r keytable.Record) { t.blocks.Gather(r.Words()[wordWindow:]) },
	})
	if err != nil {
		return nil, fmt.Errorf("hotkey: %w", err)
	}
	if budget.Limit() != unbounded {
		var ok bool
		if t.plan, ok = sketch.Fit(r.Threshold, r.Span, sketchBytes); !ok || !budget.Take(sketch.Bytes(t.plan), 0) {
			return nil, fmt.Errorf("hotkey: budget: %d: must be larger: rule %q has %d bytes for evicted keys", budget.Limit(), r.Name, sketchBytes)
		}
	}
	return t, nil
}

// listing reports whether key is listed, and then whether it is always hot or never
// counted.
func (t *table) listing(key string) (always, ok bool) {
	if listed := t.listed.Load(); listed != nil {
		always, ok = (*listed)[key]
	}
	return always, ok
}

// list lists key as never counted, or not at all.
func (t *table) list(key string, never bool) {
	for {
		was := t.listed.Load()
		next := make(map[string]bool)
		if was != nil {
			maps.Copy(next, *was)
		}
		if never {
			next[strings.Clone(key)] = false
		} else {
			delete(next, key)
		}
		if t.setListed(was, next) {
			return
		}
	}
}

// setListed makes listed the keys that are listed, unless these are was no longer.
func (t *table) setListed(was *map[string]bool, listed map[string]bool) bool {
	if len(listed) == 0 {
		return t.listed.CompareAndSwap(was, nil)
	}
	return t.listed.CompareAndSwap(was, &listed)
}

// begin ends LockOrAddAt, which has returned r and state for a key without a record. Without
// memory for a record, the State is NoMemory.
func (t *table) begin(r keytable.Record, state keytable.State, hash uint64, key string, digest bool, now int64) (keytable.Record, keytable.State) {
	keytable.Raise(&t.newest, now)
	if state == keytable.Absent {
		r, state = t.Add(hash, key)
	}
	if state == keytable.Added && digest {
		r.SetFlag()
	}
	return r, state
}

// upper returns hi and the events that the key may have had before it was evicted.
func (t *table) upper(hash uint64, now int64, hi uint64) uint64 {
	s := t.evicted.Load()
	if s == nil || s.Until() <= now {
		return hi
	}
	held := s.Lock(sketched(hash))
	defer held.Unlock()
	used := held.Used(now)
	return hi + min(used, math.MaxUint64-hi)
}

// sketched returns the part of a hash that a record has, too.
func sketched(hash uint64) uint64 { return hash << 4 >> 4 }

// bounds returns how many events of a key are in (now-span, now], from a copy of its
// window, and how many the key may have had before it was evicted.
func (t *table) bounds(hash uint64, window []uint64, now, span int64) (lo, hi uint64) {
	before := max(t.window.Slot(window)-1, 0) // from the first moment of a slot to its last
	for at, n := range t.window.Each(window, t.view, now) {
		if at > now-span {
			hi += n
		}
		if at-before > now-span {
			lo += n
		}
	}
	if _, most := t.window.Bounds(window, t.view, now); most == math.MaxUint64 {
		hi = most
	}
	return lo, t.upper(hash, now, hi)
}

// inspect returns how many events of a key are in its span at now, and whether it is in
// a hold. It changes nothing.
func (t *table) inspect(key string, now int64) (k KeyCount, hot bool) {
	hash := t.Hash(key)
	r, state := t.Lock(hash, key)
	if state != keytable.Found {
		k.Hi = t.upper(hash, now, 0)
		return k, false
	}
	defer r.Unlock()
	w := r.Words()
	return t.keyCount(hash, w, max(now, t.window.Newest(w[wordWindow:], t.blocks)), t.span)
}

// keyCount returns the count in the words of a record for (now-span, now], without the key,
// and whether the key is in a hold. It does not change them.
func (t *table) keyCount(hash uint64, w []uint64, now, span int64) (k KeyCount, hot bool) {
	var window [1 + limit.Inline]uint64
	copy(window[:], w[wordWindow:])
	t.window.Advance(window[:], t.view, now)
	k.Lo, k.Hi = t.bounds(hash, window[:], now, span)
	if w[wordUntil] != 0 {
		until := keytable.Time(w[wordUntil])
		k.Until, hot = nanos(until), now < until
	}
	return k, hot
}

// reset deletes the events and the hold of key.
func (t *table) reset(key string) {
	r, state := t.Lock(t.Hash(key), key)
	if state != keytable.Found {
		return
	}
	defer r.Unlock()
	w := r.Words()
	w[wordUntil] = 0
	t.window.Clear(w[wordWindow:], t.blocks)
}

// Base has nothing to do: the times in records are absolute.
func (t *table) Base(*[keytable.MaxBases]int64) {}

// Rebase has nothing to do either.
func (t *table) Rebase(keytable.Record, *[keytable.MaxBases]int64) {}

// Expired reports whether the key has no event in the span and was never hot. Without
// a budget it is kept, so that an event that is even earlier counts at its newest.
func (t *table) Expired(r keytable.Record) bool {
	w := r.Words()
	return w[wordUntil] == 0 && t.budget.Limit() != unbounded && !t.current(w, t.newest.Load())
}

// current reports whether a record has events in its window at now.
func (t *table) current(w []uint64, now int64) bool {
	newest := t.window.Newest(w[wordWindow:], t.blocks)
	return newest != math.MinInt64 && newest+int64(t.window.Reset(w[wordWindow:], t.blocks, newest)) > now
}

// Weight orders keys by whether they are hot, how many events they have in their
// windows, and then by their newest time.
func (t *table) Weight(r keytable.Record) uint64 {
	const (
		hot       = 1 << 62
		timeBits  = 40
		timeShift = 64 - timeBits
		most      = 1<<(62-timeBits) - 1
	)
	w, now := r.Words(), t.newest.Load()
	weight := keytable.Stamp(t.window.Newest(w[wordWindow:], t.blocks)) >> timeShift
	if t.current(w, now) {
		weight |= min(t.window.Used(w[wordWindow:], t.blocks, now), most) << timeBits
	}
	if now < keytable.Time(w[wordUntil]) {
		weight |= hot
	}
	return weight
}

// Drop counts in the sketch the events that are in the window of r, and gives the
// window's block back.
func (t *table) Drop(r keytable.Record) {
	w, now := r.Words(), t.newest.Load()
	window := w[wordWindow:]
	newest := t.window.Newest(window, t.blocks)
	switch {
	case newest == math.MinInt64 || t.budget.Limit() == unbounded:
	case t.current(w, now):
		t.evict(r.Hash(), window, max(now, newest))
	default:
		keytable.Raise(&t.expired, now)
	}
	t.window.Clear(window, t.blocks)
}

// evict counts in the sketch the events in the window of a key at now.
func (t *table) evict(hash uint64, window []uint64, now int64) {
	t.once.Do(func() { t.evicted.Store(sketch.New(t.plan)) })
	held := t.evicted.Load().Lock(sketched(hash))
	defer held.Unlock()
	if _, hi := t.window.Bounds(window, t.blocks, now); hi == math.MaxUint64 {
		held.Charge(now, hi) // their number is unknown
		return
	}
	for at, n := range t.window.Each(window, t.blocks, now) {
		held.Charge(at, n)
	}
}
