package hotkeys

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/window"
)

// use is what clients report under a hot rule. It is kept when the rule changes.
type use struct {
	counted, late, ignored, dropped atomic.Uint64 // records

	// What caches did: hits, misses, loads and stale hits.
	cache [cacheCounts]struct {
		total  atomic.Uint64
		recent *window.Rollup
	}
}

const (
	cacheHits = iota
	cacheMisses
	cacheLoads
	cacheStale
	cacheCounts
)

// savedSpans are the spans for which statistics of caches are kept.
var savedSpans = []time.Duration{time.Minute, time.Hour, 24 * time.Hour}

func newUse() (*use, error) {
	u := new(use)
	for i := range u.cache {
		recent, err := window.NewRollup(window.RollupConfig{Spans: savedSpans})
		if err != nil {
			return nil, err
		}
		u.cache[i].recent = recent
	}
	return u, nil
}

// caches returns what caches reported since the start.
func (u *use) caches() api.CacheCounts {
	return api.CacheCounts{
		Hits: u.cache[cacheHits].total.Load(), Misses: u.cache[cacheMisses].total.Load(),
		Loads: u.cache[cacheLoads].total.Load(), Stale: u.cache[cacheStale].total.Load(),
	}
}

// MaxCached is the largest number that CountCache takes: what a double holds exactly.
const MaxCached = 1 << 53

// CountCache counts what the caches of a process did under a rule since its last report.
func (k *Keys) CountCache(rule string, hits, misses, loads, stale uint64) error {
	r, err := k.rules.Load().named(rule)
	if err != nil {
		return err
	}
	counts := [cacheCounts]uint64{hits, misses, loads, stale}
	if most := slices.Max(counts[:]); most > MaxCached {
		return apierror.New(api.BadArg, "%d: must be 0 to %d", most, uint64(MaxCached))
	}
	for i, n := range counts {
		if n > 0 {
			r.use.cache[i].total.Add(n)
			r.use.cache[i].recent.Add(n)
		}
	}
	return nil
}

// Stats returns what hot keys were reported, listed and cached, under a rule or under
// all if rule is "".
func (k *Keys) Stats(rule string) (s api.HotStats, err error) {
	if err := k.known(rule); err != nil {
		return s, err
	}
	s, hot := k.list.statistics()
	s.Rules = []api.HotRuleStats{}
	for _, r := range *k.rules.Load() {
		if rule == "" || rule == r.Name {
			of := r.stats()
			of.Hot, of.IgnoredKeys = hot[r.Name], k.ignoredUnder(r.Name)
			s.Rules = append(s.Rules, of)
		}
	}
	return s, nil
}

// stats returns the statistics of r, but for what the list has.
func (r *hotRule) stats() api.HotRuleStats {
	d, u := r.keys.Stats(), r.use
	s := api.HotRuleStats{
		Rule: r.Name, Threshold: r.Threshold, Span: api.MillisOf(r.Span), Records: u.counted.Load(), Late: u.late.Load(), Ignored: u.ignored.Load(), Dropped: u.dropped.Load(),
		Events: d.Events, Moved: d.Late, Keys: d.Keys, Evicted: d.Evicted, DroppedEvents: d.Refused, Bytes: d.Bytes,
		Caches: u.caches(),
	}
	for _, span := range savedSpans {
		saved := api.HotSaved{Span: api.MillisOf(span)}
		for i, n := range []*uint64{&saved.Hits, &saved.Misses, &saved.Loads, &saved.Stale} {
			c, _ := u.cache[i].recent.Count(span) // it has these spans
			*n = c.Lo
		}
		if reads := saved.Hits + saved.Misses; reads > 0 {
			saved.Share = float64(saved.Hits) / float64(reads)
		}
		s.Saved = append(s.Saved, saved)
	}
	return s
}
