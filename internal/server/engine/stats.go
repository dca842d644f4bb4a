package engine

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/crawlers"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A Status is the state of an Engine: what the API tells of it, and more for metrics. Its size
// does not depend on the number of keys.
type Status struct {
	api.Status // what the Engine knows of it

	CounterKeys int             // keys of all counters
	CounterFull uint64          // adds that counters rejected for lack of memory
	Throttle    ratelimit.Stats // of limits that are part of requests
	Events      uint64          // that were published
	Cut         uint64          // subscribers that were too slow
	Crawlers    crawlers.Stats
}

// Status returns the state of e.
func (e *Engine) Status() Status {
	limits, now := e.limiter.Stats(), time.Now()
	published, dropped, subscribers := e.events.Stats()
	s := Status{Throttle: e.throttle.Stats(), Events: published, Cut: dropped, Crawlers: e.crawlers.Stats()}
	s.Status = api.Status{
		Started: e.started.UTC(), Uptime: int64(now.Sub(e.started) / time.Second), Now: api.Millis(e.Now().UnixMilli()),
		Totals: e.Totals(), Outcomes: e.outcomes(), Memory: api.Memory{Budget: limits.Budget, Bytes: limits.Bytes, Reserved: limits.Reserved},
		Bans:        api.BanCounts{Held: limits.Bans, Remembered: limits.Remembered, Refused: limits.BansRefused},
		Subscribers: subscribers,
	}
	s.Memory.Counters, s.CounterKeys, s.CounterFull = e.counters.Stats()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Rules = e.reloads
	s.Rules.File = e.Rules().Name
	return s
}

// Limiter returns the limiter, for collectors of its statistics.
func (e *Engine) Limiter() *ratelimit.Limiter { return e.limiter }

// RuleInfos returns the rules in force, limits and bans first.
func (e *Engine) RuleInfos() []api.Rule {
	b := e.rules.Load()
	stats := make(map[string]*api.RuleStats)
	for _, s := range e.limiter.Stats().Rules {
		stats[s.Rule] = &api.RuleStats{
			Allowed: s.Allowed, Refused: s.Refused, Banned: s.Banned, Shadow: s.Shadow, Skipped: s.Skipped, BansStarted: s.BansStarted, Keys: s.Keys, Bans: s.Bans,
			Lacking: s.Lacking, LackingRefused: s.LackingRefused,
		}
	}
	infos := []api.Rule{}
	for i := range b.file.Limits.Len() {
		r := b.file.Limits.Rule(i)
		kind := "limit"
		if len(r.Limits) == 0 {
			kind = "ban"
		}
		if s := stats[r.Name]; s != nil {
			s.LackingSentence = rules.LackingSentence(r, s.Lacking, s.LackingRefused, s.Events())
		}
		infos = append(infos, api.Rule{Name: r.Name, Kind: kind, Fields: r.Key.Fields(), Sentence: rules.LimitSentence(r), Shadow: r.Shadow, Stats: stats[r.Name]})
	}
	for i := range b.file.Hot.Len() {
		h := b.file.Hot.Rule(i)
		infos = append(infos, api.Rule{Name: h.Name, Kind: "hot", Fields: h.Key.Fields(), Sentence: rules.HotSentence(h)})
	}
	return infos
}
