package engine

import (
	"iter"
	"slices"
	"strings"

	"github.com/lately-go/lately/ratelimit"
)

// Bans yields the bans that hold as of [Engine.Now].
func (e *Engine) Bans() iter.Seq2[ratelimit.BanRecord, error] {
	if e.clock.Load() != eventTime {
		return e.limiter.Load().Bans()
	}
	now, bans := e.now(), e.memory.Load().Bans()
	return func(yield func(ratelimit.BanRecord, error) bool) {
		for r, err := range bans {
			if (err != nil || r.Until.After(now)) && !yield(r, err) {
				return
			}
		}
	}
}

// NewestBans returns the n bans that began last, of those under that rule, unless it
// is empty, that have text in their key or reason; and how many of those there are.
// It looks at all bans, and keeps no more than some n of them at a time.
func (e *Engine) NewestBans(rule, text string, n int) (newest []ratelimit.BanRecord, total int, err error) {
	keep := func() {
		slices.SortFunc(newest, newerBan)
		newest = newest[:min(n, len(newest))]
	}
	for r, err := range e.Bans() {
		if err != nil {
			return nil, 0, err
		}
		if rule != "" && r.Rule != rule || !mentions(&r, text) {
			continue
		}
		total++
		if newest = append(newest, r); len(newest) > 2*n+1024 {
			keep()
		}
	}
	keep()
	return newest, total, nil
}

// newerBan orders bans by when they began, the last first.
func newerBan(a, b ratelimit.BanRecord) int {
	if d := b.Since.Compare(a.Since); d != 0 {
		return d
	}
	if d := strings.Compare(a.Rule, b.Rule); d != 0 {
		return d
	}
	return slices.Compare(a.Key, b.Key)
}

func mentions(r *ratelimit.BanRecord, text string) bool {
	return text == "" || strings.Contains(r.Reason, text) ||
		slices.ContainsFunc(r.Key, func(v string) bool { return strings.Contains(v, text) })
}
