package engine

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/window"
)

// A HotReport is records of keys that a client has counted, under one hot rule. All of
// them are validated before any is counted:
//
//	r, err := session.HotReport("product")
//	...
//	err = r.Add(3, 40*time.Millisecond, "/product/1")
//	...
//	n := r.Count()
//
// It belongs to its Session and does not allocate, except for keys that become hot.
type HotReport struct {
	e       *Engine
	rule    *hotRule
	keys    []byte // of all records
	id      []byte // memory for one in the table of processes
	records []hotCount
}

// A hotCount is one record of a HotReport.
type hotCount struct {
	end int // of its key
	n   uint64
	age time.Duration
}

// HotReport begins a report of keys under a rule.
func (s *Session) HotReport(rule string) (*HotReport, error) {
	h, err := s.e.rules.Load().hotNamed(rule)
	if err != nil {
		return nil, err
	}
	r := &s.report
	r.e, r.rule, r.keys, r.records = s.e, h, r.keys[:0], r.records[:0]
	return r, nil
}

// Fields returns how many values a key of the rule has.
func (r *HotReport) Fields() int { return r.rule.fields }

// Add adds n events of a key, which were that long ago, to the report.
func (r *HotReport) Add(n uint64, age time.Duration, key ...string) (err error) {
	if r.keys, err = keys.Join(r.keys, &r.rule.Key, key); err == nil {
		r.records = append(r.records, hotCount{len(r.keys), n, age})
	}
	return err
}

// Count counts the records, which the process of that name reports, and returns how many
// it has counted. Skipped are records older than the span, of ignored keys, and of
// new keys when memory is full.
func (r *HotReport) Count(process string) (counted int) {
	h, now, begin := r.rule, r.e.Now(), 0
	var late, ignored, dropped uint64
	for _, record := range r.records {
		key := view(r.keys[begin:record.end])
		begin = record.end
		if record.age >= h.Span { // no window has it any more
			late++
			continue
		}
		edge, hot, err := h.keys.AddAt(now.Add(-record.age), key, record.n)
		switch {
		case err == nil:
			counted++
		case errors.Is(err, hotkey.ErrNever):
			ignored++
		default:
			dropped++
		}
		if hot {
			r.e.becameHot(h, edge)
		}
		if edge.Until.After(now) {
			r.id = appendHotID(r.id[:0], h.Name, key, process)
			r.e.past.processes.AddAt(now, view(r.id), record.n)
		}
	}
	h.use.counted.Add(uint64(counted))
	if late+ignored+dropped > 0 {
		h.use.late.Add(late)
		h.use.ignored.Add(ignored)
		h.use.dropped.Add(dropped)
	}
	return counted
}

// hotUse is what clients report under a hot rule. It is kept when the rule changes.
type hotUse struct {
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

func newHotUse() (*hotUse, error) {
	u := new(hotUse)
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
func (u *hotUse) caches() api.CacheCounts {
	return api.CacheCounts{
		Hits: u.cache[cacheHits].total.Load(), Misses: u.cache[cacheMisses].total.Load(),
		Loads: u.cache[cacheLoads].total.Load(), Stale: u.cache[cacheStale].total.Load(),
	}
}

// MaxCached is the largest number that CountCache takes: what a double holds exactly.
const MaxCached = 1 << 53

// CountCache counts what the caches of a process did under a rule since its last report.
func (e *Engine) CountCache(rule string, hits, misses, loads, stale uint64) error {
	h, err := e.rules.Load().hotNamed(rule)
	if err != nil {
		return err
	}
	counts := [cacheCounts]uint64{hits, misses, loads, stale}
	if most := slices.Max(counts[:]); most > MaxCached {
		return apierror.New(api.BadArg, "%d: must be 0 to %d", most, uint64(MaxCached))
	}
	for i, n := range counts {
		if n > 0 {
			h.use.cache[i].total.Add(n)
			h.use.cache[i].recent.Add(n)
		}
	}
	return nil
}

// HotStats returns what hot keys were reported, listed and cached, under a rule or under
// all if rule is "".
func (e *Engine) HotStats(rule string) (s api.HotStats, err error) {
	r := e.rules.Load()
	if rule != "" {
		if _, err := r.hotNamed(rule); err != nil {
			return s, err
		}
	}
	list := e.hot.Stats()
	s = api.HotStats{Watchers: list.Watchers, Resets: list.Resets, Updates: list.Updates, ListBytes: list.Bytes, ListDropped: list.Dropped, Rules: []api.HotRuleStats{}}
	for _, h := range r.hot {
		if rule == "" || rule == h.Name {
			of := h.stats()
			of.Hot, of.IgnoredKeys = list.Hot[h.Name], e.ignoredUnder(h.Name)
			s.Rules = append(s.Rules, of)
		}
	}
	return s, nil
}

// stats returns the statistics of h, but for what the list has.
func (h *hotRule) stats() api.HotRuleStats {
	d, u := h.keys.Stats(), h.use
	s := api.HotRuleStats{
		Rule: h.Name, Threshold: h.Threshold, Span: api.MillisOf(h.Span), Records: u.counted.Load(), Late: u.late.Load(), Ignored: u.ignored.Load(), Dropped: u.dropped.Load(),
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
