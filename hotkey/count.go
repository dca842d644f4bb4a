package hotkey

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// A counted is the result of counting events of a key under one rule.
type counted struct {
	hash  uint64 // of the stored key
	now   int64  // when the event came
	until int64  // the end of the key's last hold
	hot   bool   // the event made the key hot
}

// count counts n events of key under a rule at now, or now if that is unread. If the key
// becomes hot, it sets the edge. The error is why nothing was counted.
func (d *Detector) count(rule int, now int64, key string, n uint64, edge *Edge) (c counted, err error) {
	t := d.tables[rule]
	if t.listed.Load() != nil || t.forward.Load() != nil || len(key) > maxWhole || n == 0 {
		return d.countSpecial(t, now, key, n, edge)
	}
	c, err = d.countStored(t, now, key, false, n, edge)
	if c.hot {
		edge.Key = strings.Clone(key)
	}
	return c, err
}

// countSpecial is count for all events: also for those that are forwarded, and for
// keys that are long or listed. Without these, count costs 3 ns less.
func (d *Detector) countSpecial(t *table, now int64, key string, n uint64, edge *Edge) (c counted, err error) {
	always, listed := t.listing(key)
	if listed && !always || len(key) > maxKey || n == 0 {
		if c.now = now; now == unread {
			c.now = d.now()
		}
		c.hash, c.until = t.Hash(d.stored(key)), t.hotUntil(d, key)
		if listed && !always {
			err = ErrNever
		}
		return c, err
	}
	c, err = d.countStored(t, now, d.stored(key), len(key) > maxWhole, n, edge)
	if listed {
		c.until = math.MaxInt64
	}
	if f := t.forward.Load(); f != nil {
		f.call(key, n, c)
	}
	switch {
	case listed:
		*edge = Edge{}
		c.hot, err = false, nil
	case c.hot:
		edge.Key = strings.Clone(key)
	}
	return c, err
}

// countStored is count for a stored key. It does not set the key of the edge.
func (d *Detector) countStored(t *table, now int64, key string, digest bool, n uint64, edge *Edge) (c counted, err error) {
	c.hash = t.Hash(key)
	hint := t.Prefetch(c.hash)
	if now == unread {
		now = d.now() // while the processor fetches the record
	}
	c.now = now
	rec, state := t.LockOrAddAt(hint, c.hash, key)
	if state != keytable.Found {
		if rec, state = t.begin(rec, state, c.hash, key, digest, now); state == keytable.NoMemory {
			c.until = math.MinInt64
			return c, ErrNoMemory
		}
	}
	c.until, c.hot = t.count(rec, c.hash, now, n, edge)
	return c, nil
}

// count counts n events of the key of rec at now, or at the newest time of the key if
// that is later, and unlocks rec. If the key becomes hot, it sets the edge, without its
// key. It returns the end of the key's last hold.
func (t *table) count(rec keytable.Record, hash uint64, now int64, n uint64, edge *Edge) (until int64, hot bool) {
	w := rec.Words()
	until = keytable.Time(w[wordUntil])
	used, kept := t.window.CountNewest(w[wordWindow:], now, n)
	if !kept {
		now, used, kept = t.countAnywhere(w[wordWindow:], now, n)
	}
	if used >= t.rule.Threshold && now >= until { // the lower bound is used or less
		until, hot = t.decide(w, hash, now, edge)
	}
	rec.Unlock()
	stats := t.stripe()
	if stats.events.Add(n); !kept && stats.lost.Add(1)%sweepEvery == 0 {
		t.Sweep()
	}
	return until, hot
}

// countAnywhere is limit.Counter.Count, and also returns the time at which it counted.
func (t *table) countAnywhere(window []uint64, now int64, n uint64) (at int64, used uint64, kept bool) {
	newest := t.window.Newest(window, t.blocks)
	if newest == math.MinInt64 {
		newest = t.expired.Load()
	}
	if now < newest {
		now = newest
		t.stripe().late.Add(n)
	}
	used, kept = t.window.Count(window, t.blocks, now, n)
	return now, used, kept
}

// decide sets the edge, without its key, if the key with the words w becomes hot at now.
// It returns the end of the key's last hold.
func (t *table) decide(w []uint64, hash uint64, now int64, edge *Edge) (until int64, hot bool) {
	lo, hi := t.window.Bounds(w[wordWindow:], t.blocks, now)
	if lo < t.rule.Threshold {
		return keytable.Time(w[wordUntil]), false
	}
	*edge = Edge{Rule: t.rule.Name, Time: nanos(now), First: w[wordUntil] == 0, Lo: lo, Hi: t.upper(hash, now, hi)}
	until = now + int64(t.rule.hold())
	edge.Until, w[wordUntil] = nanos(until), keytable.Stamp(until)
	return until, true
}

// Forward calls f for each event that d counts, for example to send the counts to another
// process: with the index of the rule in Rules, the key, the number of events, their time,
// and whether the key is hot. key is valid until f returns. f is called by all goroutines
// that count, so it must be safe for concurrent use and return soon. It is not called for
// keys that are never counted.
//
// A Detector has one such function: the last one set. nil removes it, but calls in
// progress may still call f. A client.Fleet calls Forward.
func (d *Detector) Forward(f func(rule int, key string, n uint64, t time.Time, hot bool)) {
	for i, t := range d.tables {
		if f == nil {
			t.forward.Store(nil)
		} else {
			t.forward.Store(&forward{rule: i, to: f, keys: sync.Pool{New: func() any { return new([]byte) }}})
		}
	}
}

// A forward is the function that the events of a rule are passed to, too.
type forward struct {
	rule int
	to   func(rule int, key string, n uint64, t time.Time, hot bool)
	keys sync.Pool // *[]byte, copies of keys
}

// call passes n events of key. It copies the key, since what is passed to an unknown function
// is on the heap, and the keys of all events would be.
func (f *forward) call(key string, n uint64, c counted) {
	b := f.keys.Get().(*[]byte)
	*b = append((*b)[:0], key...)
	f.to(f.rule, viewed(*b), n, nanos(c.now), c.now < c.until)
	f.keys.Put(b)
}
