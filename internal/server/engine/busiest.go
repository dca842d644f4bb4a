package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// describe adds to the keys of c, whose counts are those of a span that ends at t, how busy
// they were at most, and which rule refused them.
func (e *Engine) describe(c *counter, t time.Time, span time.Duration, keys []api.KeyCount) {
	rules := e.rulesOf(c)
	var key, row []byte
	for i := range keys {
		k := &keys[i]
		var err error
		if key, err = c.Key.Join(key[:0], k.Values()...); err != nil {
			continue // the key of this counter has values of its own
		}
		k.Peak = c.peak(t, span, string(key))
		if span > maxRefusedSpan {
			continue
		}
		for _, r := range rules {
			row = append(appendRefusedRule(row[:0], r), key...)
			if n, err := e.refused.EstimateLastAt(t, string(row), span); err == nil && n > k.Refused {
				k.Refused, k.RefusedBy = n, r.Name
			}
		}
	}
}

// rulesOf returns the limits and bans that count by the same key as c.
func (e *Engine) rulesOf(c *counter) (same []*ratelimit.Rule) {
	set, shape := e.limiter.Set(), c.Key.AppendShape(nil)
	for i := range set.Len() {
		if r := set.Rule(i); bytes.Equal(r.Key.AppendShape(nil), shape) {
			same = append(same, r)
		}
	}
	return same
}

// peak returns the events per second of a key in the slot of the span that had most.
func (c *counter) peak(t time.Time, span time.Duration, key string) float64 {
	var most uint64
	table, t := c.counts(t)
	for _, n := range table.ReadAt(t, key).Slots(span) {
		most = max(most, n)
	}
	window := slices.Max(c.Spans)
	for _, s := range c.Spans {
		if s >= span {
			window = min(window, s)
		}
	}
	return float64(most) / slotOf(window).Seconds()
}
