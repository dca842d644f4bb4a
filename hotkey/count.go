package hotkey

import (
	"math"
	"strings"

	"github.com/lately-go/lately/internal/keytable"
)

// A counted is what counting an event of a key, or several, under one rule has shown.
type counted struct {
	hash  uint64 // of what is kept of the key
	now   int64  // when the event came
	until int64  // the end of the key's last hold
	hot   bool   // the event made the key hot
}

// count counts n events of key under a rule at now, or now if that is unread. If the key
// becomes hot, it sets the edge. The error says why nothing was counted.
func (d *Detector) count(rule int, now int64, key string, n uint64, edge *Edge) (c counted, err error) {
	t, stored := d.tables[rule], key
	if len(key) > maxWhole {
		stored = d.stored(key)
	}
	c.hash = t.Hash(stored)
	hint := t.Prefetch(c.hash)
	if c.now = now; now == unread {
		c.now = d.now() // while the processor fetches the record
	}
	c.until = math.MinInt64
	always, listed := t.listing(key)
	switch {
	case listed && !always:
		return c, ErrNever
	case len(key) > maxKey, n == 0:
		return c, nil
	}
	rec, state := t.LockOrAddAt(hint, c.hash, stored)
	if state != keytable.Found {
		rec, state = t.begin(rec, state, c.hash, stored, len(key) > maxWhole, c.now)
	}
	if state != keytable.NoMemory {
		t.count(rec, &c, n, edge)
	} else {
		err = ErrNoMemory
	}
	if listed {
		c.until = math.MaxInt64
	}
	if f := t.forward.Load(); f != nil {
		f.to.Add(f.rule, key, n, c.now, c.now < c.until)
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

// count counts n events of the key of rec at c.now, or at the newest time of the key if
// that is later, and unlocks rec. It sets the edge, without its key, if the key becomes
// hot.
func (t *table) count(rec keytable.Record, c *counted, n uint64, edge *Edge) {
	w, now := rec.Words(), c.now
	window, stats := w[wordWindow:], &t.counts[c.hash>>60]
	stats.events.Add(n)
	used, kept := t.window.CountNewest(window, now, n)
	if !kept {
		newest := t.window.Newest(window, t.blocks)
		if newest == math.MinInt64 {
			newest = t.expired.Load()
		}
		if now < newest {
			now = newest
			stats.late.Add(n)
		}
		used, kept = t.window.Count(window, t.blocks, now, n)
	}
	c.until = keytable.Time(w[wordUntil])
	if used >= t.rule.Threshold && now >= c.until { // the lower bound is used or less
		t.decide(w, c, now, edge)
	}
	rec.Unlock()
	if !kept && stats.lost.Add(1)%sweepEvery == 0 {
		t.Sweep()
	}
}

// decide sets the edge, without its key, if the key with the words w becomes hot at now.
func (t *table) decide(w []uint64, c *counted, now int64, edge *Edge) {
	lo, hi := t.window.Bounds(w[wordWindow:], t.blocks, now)
	if lo < t.rule.Threshold {
		return
	}
	*edge = Edge{Rule: t.rule.Name, Time: nanos(now), First: w[wordUntil] == 0, Lo: lo, Hi: t.upper(c.hash, now, hi)}
	c.hot, c.until = true, now+int64(t.rule.hold())
	edge.Until, w[wordUntil] = nanos(c.until), keytable.Stamp(c.until)
}
