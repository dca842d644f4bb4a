package hotkey

import (
	"math"
	"strings"

	"github.com/lately-go/lately/internal/keytable"
)

// A use is an event, or several, of a key under one rule, which is about to be counted.
// The processor fetches the key's record meanwhile, so the clock is read between
// Detector.use and count.
type use struct {
	table *table
	hash  uint64
	hint  keytable.Hint
}

// use returns the use of a key of which stored is kept.
func (d *Detector) use(rule int, stored string) use {
	t := d.tables[rule]
	hash := t.Hash(stored)
	return use{t, hash, t.Prefetch(hash)}
}

// count counts n events of key, of which stored is kept, at now, and returns the end of
// the key's last hold, with an error if it counted nothing. If the key becomes hot, it
// sets the edge.
func (u *use) count(now int64, key, stored string, n uint64, edge *Edge) (hot bool, until int64, err error) {
	t := u.table
	always, listed := t.listing(key)
	switch {
	case listed && !always:
		return false, math.MinInt64, ErrNever
	case len(key) > maxKey, n == 0:
		return false, math.MinInt64, nil
	}
	rec, ok := t.add(u, stored, len(key) > maxWhole, now)
	if !ok {
		until, err = math.MinInt64, ErrNoMemory
	} else {
		var sweep bool
		hot, sweep, until = t.count(rec, u.hash, now, n, edge)
		rec.Unlock()
		if sweep {
			t.Sweep()
		}
	}
	if listed {
		until = math.MaxInt64
	}
	if f := t.forward.Load(); f != nil {
		f.to.Add(f.rule, key, n, now, now < until)
	}
	switch {
	case listed:
		*edge = Edge{}
		return false, math.MaxInt64, nil
	case hot:
		edge.Key = strings.Clone(key)
	}
	return hot, until, err
}
