package hotkeys

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/window"
)

// A Report is records of keys that a client has counted, under one hot rule. All of
// them are validated before any is counted:
//
//	var r hotkeys.Report
//	err := keys.Begin(&r, "product")
//	...
//	err = r.Add(3, 40*time.Millisecond, "/product/1")
//	...
//	n := r.Count("svc-1")
//
// Its memory is used again; then it does not allocate, except for keys that become hot. It is not safe for concurrent use.
type Report struct {
	k       *Keys
	rule    *hotRule
	keys    []byte // of all records
	id      []byte // memory for one in the table of processes
	records []counted
}

// counted is one record of a Report.
type counted struct {
	end int // of its key
	n   uint64
	age time.Duration
}

// Begin begins a report of keys under a rule in r.
func (k *Keys) Begin(r *Report, rule string) (err error) {
	r.k, r.keys, r.records = k, r.keys[:0], r.records[:0]
	r.rule, err = k.rules.Load().named(rule)
	return err
}

// Fields returns how many values a key of the rule has.
func (r *Report) Fields() int { return r.rule.fields }

// Add adds n events of a key, which were that long ago, to the report.
func (r *Report) Add(n uint64, age time.Duration, key ...string) (err error) {
	if r.keys, err = keys.Join(r.keys, &r.rule.Key, key); err == nil {
		r.records = append(r.records, counted{len(r.keys), n, age})
	}
	return err
}

// Count counts the records, which the process of that name reports, and returns how many
// it has counted. Skipped are records older than the span, of ignored keys, and of
// new keys when memory is full.
func (r *Report) Count(process string) (n int) {
	now, begin := r.k.config.Now(), 0
	var late, ignored, dropped uint64
	for _, record := range r.records {
		key := keys.View(r.keys[begin:record.end])
		begin = record.end
		if record.age >= r.rule.Span { // no window has it any more
			late++
			continue
		}
		switch err := r.count(now, key, record, process); {
		case err == nil:
			n++
		case errors.Is(err, hotkey.ErrNever):
			ignored++
		default:
			dropped++
		}
	}
	u := r.rule.use
	u.counted.Add(uint64(n))
	if late+ignored+dropped > 0 {
		u.late.Add(late)
		u.ignored.Add(ignored)
		u.dropped.Add(dropped)
	}
	return n
}

// count counts one record.
func (r *Report) count(now time.Time, key string, record counted, process string) error {
	edge, hot, err := r.rule.keys.AddAt(now.Add(-record.age), key, record.n)
	if hot {
		r.k.becameHot(r.rule, edge)
	}
	if edge.Until.After(now) {
		r.id = appendID(r.id[:0], r.rule.Name, key, process)
		r.k.past.processes.AddAt(now, keys.View(r.id), record.n)
	}
	return err
}

// use is what clients report under a hot rule. It is kept when the rule changes.
type use struct {
	counted, late, ignored, dropped atomic.Uint64 // records

	cache [len(cacheNames)]struct { // what caches did
		total  atomic.Uint64
		recent *window.Rollup
	}
}

// cacheNames names what is counted of caches, and fieldsOf returns the counts of c in the same order.
var cacheNames = [...]string{"hits", "misses", "loads", "stale"}

func fieldsOf(c *api.CacheCounts) [len(cacheNames)]*uint64 {
	return [...]*uint64{&c.Hits, &c.Misses, &c.Loads, &c.Stale}
}

// savedSpans are the spans for which statistics of caches are kept.
var savedSpans = []time.Duration{time.Minute, time.Hour, 24 * time.Hour}

func newUse() *use {
	u := new(use)
	for i := range u.cache {
		u.cache[i].recent, _ = window.NewRollup(window.RollupConfig{Spans: savedSpans}) // they are valid
	}
	return u
}

// caches returns what caches reported since the start.
func (u *use) caches() (c api.CacheCounts) {
	for i, n := range fieldsOf(&c) {
		*n = u.cache[i].total.Load()
	}
	return c
}

// MaxCached is the largest number that CountCache takes: what a double holds exactly.
const MaxCached = 1 << 53

// CountCache counts what the caches of a process did under a rule since its last report.
func (k *Keys) CountCache(rule string, counts api.CacheCounts) error {
	r, err := k.rules.Load().named(rule)
	if err != nil {
		return err
	}
	for i, n := range fieldsOf(&counts) {
		if *n > MaxCached {
			return apierror.New(api.BadArg, "%s: %d: must be 0 to %d", cacheNames[i], *n, uint64(MaxCached))
		}
	}
	for i, n := range fieldsOf(&counts) {
		if *n > 0 {
			r.use.cache[i].total.Add(*n)
			r.use.cache[i].recent.Add(*n)
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
		for i, n := range fieldsOf(&saved.CacheCounts) {
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
