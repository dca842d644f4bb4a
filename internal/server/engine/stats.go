package engine

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/ratelimit"
)

// A Status is the state of an Engine for the API, and more for metrics. Its size
// does not depend on the number of keys.
type Status struct {
	api.Status // the fields that the Engine can fill in

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
	published, dropped := e.events.Stats()
	s := Status{Throttle: e.throttle.Stats(), Events: published, Cut: dropped, Crawlers: e.crawlers.Stats()}
	s.Status = api.Status{
		Started: e.started.UTC(), Uptime: int64(now.Sub(e.started) / time.Second), Now: api.Millis(e.Now().UnixMilli()),
		Totals: e.Totals(), Outcomes: e.outcomes(), Memory: api.Memory{Budget: limits.Budget, Bytes: limits.Bytes, Reserved: limits.Reserved},
		Bans: api.BanCounts{Held: limits.Bans, Remembered: limits.Remembered, Refused: limits.BansRefused},
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
	for _, r := range b.file.Limits.Rules() {
		kind := "limit"
		if len(r.Limits) == 0 {
			kind = "ban"
		}
		if s := stats[r.Name]; s != nil {
			s.LackingSentence = sentence.Lacking(r, s.Lacking, s.LackingRefused, s.Events())
		}
		infos = append(infos, api.Rule{Name: r.Name, Kind: kind, Fields: r.Key.Fields(), Sentence: sentence.Limit(r), Shadow: r.Shadow, Stats: stats[r.Name]})
	}
	for i := range b.file.Hot {
		h := &b.file.Hot[i]
		infos = append(infos, api.Rule{Name: h.Name, Kind: "hot", Fields: h.Key.Fields(), Sentence: sentence.Hot(h)})
	}
	return infos
}

// maxRuleRates bounds the totals of rules that Rates returns.
const maxRuleRates = 1 << 13

// sample adds to the history, and to the uses of hot keys, until the engine is closed.
func (e *Engine) sample() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
		e.history.Tick()
		if n%int(hotkeys.SampleEvery/time.Second) == 0 {
			e.hot.Sample()
		}
	}
}

// measure returns what was counted since the start.
func (e *Engine) measure() (s history.Sample) {
	t := e.Totals()
	s.All = history.Outcomes{t.Allowed, t.Refused, t.Banned, t.Unmatched, t.Errors}
	stats := e.limiter.Stats().Rules
	for i := range stats[:min(len(stats), history.MaxRules)] {
		r := &stats[i]
		s.Rules.Add(r.Rule, history.Outcomes{r.Allowed, r.Refused, r.Banned, r.Shadow, r.BansStarted})
	}
	for name, t := range e.hot.Totals() {
		if s.Hot.Add(name, history.Outcomes{t.Events, t.Hits, t.Misses, t.Loads, t.Stale}); s.Hot.Len() == history.MaxHot {
			break
		}
	}
	return s
}

// Totals returns the outcomes of all events so far.
func (e *Engine) Totals() (t api.Totals) {
	for i := range e.totals {
		s := &e.totals[i]
		t.Allowed += s.allowed.Load()
		t.Refused += s.refused.Load()
		t.Banned += s.banned.Load()
		t.Unmatched += s.unmatched.Load()
		t.Errors += s.errors.Load()
	}
	return t
}

// outcomes returns how many answers were reported.
func (e *Engine) outcomes() (n uint64) {
	for i := range e.totals {
		n += e.totals[i].outcomes.Load()
	}
	return n
}

// Rates returns the decisions of the last span, see [history.History.Rates]. With perRule, points
// times the number of rules, hot ones included, is at most 8,192.
func (e *Engine) Rates(span time.Duration, points int, perRule bool) ([]api.Rate, error) {
	if span < time.Second || span > 24*time.Hour {
		return nil, apierror.New(api.BadArg, "span: %v: must be 1s to 24h", span)
	}
	file := e.rules.Load().file
	if rules := min(len(file.Limits.Rules()), history.MaxRules) + min(len(file.Hot), history.MaxHot); perRule && points*rules > maxRuleRates {
		return nil, apierror.New(api.BadArg, "points: %d: must be 1 to %d for the rates of %d rules", points, maxRuleRates/rules, rules)
	}
	return e.history.Rates(span, points, perRule), nil
}

// Marks returns the newest marks of the last span, up to 256, the oldest first.
func (e *Engine) Marks(span time.Duration) []api.Mark { return e.history.Marks(span) }
