package engine

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/integer"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A Status is the state of an Engine. Its size does not depend on the number of keys.
type Status struct {
	Started     time.Time
	Now         time.Time // as Engine.Now
	EventTime   bool      // it judges by event time
	Totals      api.Totals
	Limits      ratelimit.Stats
	Throttle    ratelimit.Stats // of limits that are part of requests
	Integers    integer.Stats
	Subscribers int
	Events      uint64 // that were published
	Cut         uint64 // subscribers that were too slow
	Reloads     uint64
	RulesFile   string
	RulesSince  time.Time
	RulesError  error // why the last reload failed, or nil
}

// Status returns the state of e.
func (e *Engine) Status() Status {
	s := Status{
		Started: e.started, Now: e.Now(), EventTime: e.config.EventTime, Totals: e.Totals(), Limits: e.limiter.Stats(), Throttle: e.throttle.Stats(), Integers: e.integers.Stats(),
		Subscribers: int(e.hub.n.Load()), Events: e.hub.events.Load(), Cut: e.hub.cut.Load(), RulesFile: e.Rules().Name,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Reloads, s.RulesSince, s.RulesError = e.reloads.n, e.reloads.at, e.reloads.last
	return s
}

// Limiter returns the limiter, for collectors of its statistics.
func (e *Engine) Limiter() *ratelimit.Limiter { return e.limiter }

// RuleInfos returns the rules in force, limits and bans first.
func (e *Engine) RuleInfos() []api.Rule {
	b := e.rules.Load()
	stats := make(map[string]*api.RuleStats)
	for _, s := range e.limiter.Stats().Rules {
		stats[s.Rule] = &api.RuleStats{Allowed: s.Allowed, Refused: s.Refused, Banned: s.Banned, Shadow: s.Shadow, Skipped: s.Skipped, BansStarted: s.BansStarted, Keys: s.Keys, Bans: s.Bans}
	}
	infos := []api.Rule{}
	for i := range b.file.Limits.Len() {
		r := b.file.Limits.Rule(i)
		kind := "limit"
		if len(r.Limits) == 0 {
			kind = "ban"
		}
		infos = append(infos, api.Rule{Name: r.Name, Kind: kind, Fields: r.Key.Fields(), Sentence: rules.LimitSentence(r), Shadow: r.Shadow, Stats: stats[r.Name]})
	}
	for _, h := range b.hot {
		infos = append(infos, api.Rule{Name: h.Name, Kind: "hot", Fields: h.Key.Fields(), Sentence: rules.HotSentence(&h.Rule)})
	}
	return infos
}
