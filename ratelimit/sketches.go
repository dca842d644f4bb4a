package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/sketch"
)

// Keys for which a rule has no memory share sketches, one for each counter, which are
// made when the first such key comes. Their bytes are taken from the budget at the
// start.

// sketchShare is which share of the budget is kept for sketches.
const sketchShare = 16

// window returns how long the i-th counter may know of an event.
func (l *layout) window(i int) time.Duration {
	if i < len(l.limits) {
		return l.limits[i].Window()
	}
	return l.ban.Span
}

// sketchConfigs returns what the sketches are to be, within that many bytes. ok
// is false if these are too few.
func (rs *records) sketchConfigs(bytes int64) (configs []sketch.Config, total int64, ok bool) {
	for i := range rs.counters {
		n := rs.layout.ban.After
		if i < len(rs.limits) {
			n = rs.layout.keep[i]
		}
		c, ok := sketch.Fit(n, rs.layout.window(i), bytes/int64(len(rs.counters)))
		if !ok {
			return nil, 0, false
		}
		configs = append(configs, c)
		total += sketch.Bytes(c)
	}
	return configs, total, true
}

// reserveSketches takes the bytes of the sketches from the budget. If they are
// too few for a sketch, keys without memory are refused.
func (rs *records) reserveSketches(bytes int64) {
	configs, total, ok := rs.sketchConfigs(bytes)
	if ok && rs.budget.Take(total, 0) {
		rs.sketchPlan = configs
		rs.sketchBytes.Store(total)
	}
}

// reserved returns the bytes of the sketches that have been taken from the budget, until
// the sketches are made.
func (rs *records) reserved() int64 {
	if rs.sketches.Load() != nil {
		return 0
	}
	return rs.sketchBytes.Load()
}

// overflow returns the sketches, and makes them if they are not there yet. It is
// nil if there can be none.
func (rs *records) overflow() []*sketch.Window {
	if ws := rs.sketches.Load(); ws != nil {
		return *ws
	}
	rs.sketchMu.Lock()
	defer rs.sketchMu.Unlock()
	if ws := rs.sketches.Load(); ws != nil {
		return *ws
	}
	var made []*sketch.Window
	for _, c := range rs.sketchPlan {
		made = append(made, sketch.New(c))
	}
	rs.sketches.Store(&made)
	return made
}

// lockSketch locks the key's part of the sketches. It reports false if the key
// has got a record meanwhile, which is then to be used.
func (p *probe) lockSketch(r *request) bool {
	windows := p.records.overflow()
	if windows == nil {
		p.noMemory = true
		return true
	}
	s := scratchOf(r)
	from := len(s.held)
	for _, w := range windows {
		s.held = append(s.held, w.Lock(p.hash))
	}
	p.sketch = s.held[from:]
	// A goroutine that adds a record publishes it before it looks into the sketch.
	if p.records.table.Has(p.hash, p.key) {
		p.unlockSketch()
		p.sketch, s.held = nil, s.held[:from]
		return false
	}
	p.counted = !r.Peek && !p.look
	return true
}

func (p *probe) unlockSketch() {
	for i := range p.sketch {
		p.sketch[i].Unlock()
	}
}

// begin gives the new record r what is known of its key: whether it is banned, that it may have had a
// record that has expired, and what the sketches may have counted.
func (rs *records) begin(r keytable.Record, hash uint64, key string, now int64) {
	rs.markBanned(r, hash, key)
	w := r.Words()
	w[wordNewest] = keytable.Stamp(rs.expired.Load())
	windows := rs.sketches.Load()
	if windows == nil {
		return
	}
	for i, window := range *windows {
		if window.Until() <= now || i >= len(rs.limits) { // nobody is banned for what a sketch says
			continue
		}
		held := window.Lock(hash)
		rs.counters[i].chargeHistory(w, held.HandOn(now))
		held.Unlock()
	}
	rs.cut(r)
}
