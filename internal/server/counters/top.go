package counters

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// Top returns the n keys that f selects with the largest counts over a span that
// ends now, the largest first, with their peaks. span 0 means the counter's longest. It scans the counter's
// keys. It also returns the span. The error is an [*apierror.Error].
func (c *Counter) Top(n int, span time.Duration, f keys.Filter) ([]api.KeyCount, time.Duration, error) {
	span, err := c.span(span)
	if err != nil {
		return nil, 0, err
	}
	now := c.all.config.Now()
	var out []api.KeyCount
	if f != (keys.Filter{}) {
		out, err = c.topOf(now, n, span, &f)
	} else {
		out, err = c.topOfAll(now, n, span)
	}
	for i := range out {
		if key, err := c.Key.Join(nil, out[i].Values()...); err == nil { // else it has values of its own
			out[i].Peak = c.peak(now, span, string(key))
		}
	}
	return out, span, err
}

// topOfAll is Top of all keys.
func (c *Counter) topOfAll(t time.Time, n int, span time.Duration) ([]api.KeyCount, error) {
	table, t := c.counts(t)
	top, err := table.TopAt(t, n, span)
	if err != nil {
		return nil, apierror.New(api.BadArg, "%v", err)
	}
	out := make([]api.KeyCount, len(top))
	for i, k := range top {
		out[i] = api.KeyCount{Key: api.KeyOf(keyvalue.All(c.Key, k.Key)...), Count: api.Count{Lo: k.Lo, Hi: k.Hi, Estimate: k.Estimate}}
	}
	return out, nil
}

// topOf is Top of the keys that f selects.
func (c *Counter) topOf(t time.Time, n int, span time.Duration, f *keys.Filter) ([]api.KeyCount, error) {
	top := heap.NewTop(n, func(a, b api.KeyCount) int {
		return cmp.Or(cmp.Compare(b.Lo, a.Lo), slices.Compare(a.Values(), b.Values()))
	})
	table, t := c.counts(t)
	for key, r := range table.AllAt(t) {
		parts := keyvalue.All(c.Key, key)
		if !f.Selects(parts) {
			continue
		}
		count, err := r.Count(span)
		if err != nil {
			return nil, apierror.New(api.BadArg, "%v", err)
		}
		if count.Lo > 0 {
			top.Add(api.KeyCount{Key: api.KeyOf(parts...), Count: api.Count(count)})
		}
	}
	return append([]api.KeyCount{}, top.Items()...), nil
}

// peak returns the events per second of a key in the slot of the span that had most.
func (c *Counter) peak(t time.Time, span time.Duration, key string) float64 {
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
