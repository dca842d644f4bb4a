package engine

import (
	"sync"
	"time"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A Status is what an Engine says of itself. Its size does not depend on the number
// of keys.
type Status struct {
	Started     time.Time
	Now         time.Time // as Engine.Now
	EventTime   bool      // it judges by event time
	Totals      Totals
	Limits      ratelimit.Stats
	Throttle    ratelimit.ThrottleStats // limits that callers bring
	Subscribers int
	Told        uint64 // events
	Cut         uint64 // subscribers that were too slow
	Reloads     uint64
	RulesFile   string
	RulesSince  time.Time
	RulesError  error // why the last reload failed, or nil
}

// Status returns the state of e.
func (e *Engine) Status() Status {
	s := Status{
		Started: e.started, Now: e.now(), EventTime: e.clock.Load() == eventTime, Totals: e.Totals(), Limits: e.limits(),
		Subscribers: int(e.hub.n.Load()), Told: e.hub.told.Load(), Cut: e.hub.cut.Load(), RulesFile: e.Rules().Name,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Reloads, s.RulesSince, s.RulesError = e.reloads.n, e.reloads.at, e.reloads.last
	return s
}

// Limiter returns the limiter, for collectors of its statistics. It is another one
// once the engine judges by event time.
func (e *Engine) Limiter() *ratelimit.Limiter { return e.limiter.Load() }

// A RuleInfo is one rule of the rules in force.
type RuleInfo struct {
	Name     string
	Kind     string // limit, ban or hot
	Fields   []string
	Sentence string
	Shadow   bool
	Stats    *ratelimit.RuleStats // nil for a hot rule
}

// RuleInfos returns the rules in force, limits and bans first.
func (e *Engine) RuleInfos() []RuleInfo {
	b := e.book.Load()
	stats := make(map[string]*ratelimit.RuleStats)
	s := e.limits()
	for i := range s.Rules {
		stats[s.Rules[i].Rule] = &s.Rules[i]
	}
	var infos []RuleInfo
	for i := range b.file.Limits.Len() {
		r := b.file.Limits.Rule(i)
		kind := "limit"
		if len(r.Limits) == 0 {
			kind = "ban"
		}
		infos = append(infos, RuleInfo{r.Name, kind, r.Key.Fields(), rules.LimitSentence(r), r.Shadow, stats[r.Name]})
	}
	for _, h := range b.hot {
		infos = append(infos, RuleInfo{h.Name, "hot", h.Key.Fields(), rules.HotSentence(&h.Rule), false, nil})
	}
	return infos
}

// A statsCache keeps the limiter's statistics for a while, as to make them is to look at
// all bans.
type statsCache struct {
	mu    sync.Mutex
	of    *ratelimit.Limiter
	at    time.Time // when they were made
	took  time.Duration
	stats ratelimit.Stats
}

// statsPart is which part of the time statistics are made at most: a tenth of one core.
const statsPart = 10

// limits returns the limiter's statistics, which must not be changed. They are those of
// now, or not older than ten times what it takes to make them.
func (e *Engine) limits() ratelimit.Stats {
	c, l := &e.stats, e.limiter.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.of != l || c.took < freeScan || now.Sub(c.at) > statsPart*c.took {
		c.stats = l.Stats()
		c.of, c.at, c.took = l, now, time.Since(now)
	}
	return c.stats
}
