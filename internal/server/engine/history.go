package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
)

// A history has the decisions of each second of the last two minutes and of each minute of
// the last day, and what happened under hot rules. Decisions do not pay for it. With
// keptRules limits and bans and keptHot hot rules it takes 10 MiB.
type history struct {
	mu       sync.Mutex
	began    time.Time
	second   part   // since the start of this process, to the end of the last of seconds
	minute   part   // to the end of the last of minutes
	seconds  []part // oldest first
	minutes  []part
	restored int                  // how many of minutes are of processes before this one
	marks    []api.Mark           // oldest first
	handled  map[string]time.Time // the last ban by hand, by the type of its mark
}

const (
	keptSeconds = 120
	keptMinutes = 24 * 60
	keptRules   = 128 // limits and bans: the first of the rules file
	keptHot     = 32  // hot rules: the first
	keptMarks   = 256

	// maxRuleRates bounds the totals of rules that Rates returns.
	maxRuleRates = 1 << 13
)

// outcomes counts decisions or hot keys: the fields of api.Totals, api.RuleTotals or
// api.HotTotals, in order.
type outcomes [5]uint64

// since returns what was counted between earlier and o. If o has less, the counters began
// again at 0 in between.
func (o outcomes) since(earlier outcomes) outcomes {
	d := o
	for i := range o {
		if o[i] < earlier[i] {
			return o
		}
		d[i] -= earlier[i]
	}
	return d
}

// A part is what was counted in a part of the time.
type part struct {
	from, to time.Time
	names    *ruleNames // shared by parts while they stay the same
	counts
}

// ruleNames is the names of limits and bans, and of hot rules.
type ruleNames struct {
	Rules []string `json:"names,omitempty"`
	Hot   []string `json:"hot,omitempty"`
}

func (n *ruleNames) equal(m *ruleNames) bool {
	return slices.Equal(n.Rules, m.Rules) && slices.Equal(n.Hot, m.Hot)
}

// counts is what all decisions and each of some rules have counted.
type counts struct {
	All   outcomes   `json:"all"`
	Rules []outcomes `json:"rules,omitempty"`
	Hot   []outcomes `json:"hot,omitempty"`
}

// since returns what was counted between the ends of earlier and x, which begin together.
func (x *part) since(earlier *part) part {
	return part{earlier.to, x.to, x.names, counts{
		x.All.since(earlier.All), rulesSince(x.names.Rules, x.Rules, earlier.names.Rules, earlier.Rules), rulesSince(x.names.Hot, x.Hot, earlier.names.Hot, earlier.Hot),
	}}
}

// rulesSince returns what each of the rules of these names has counted since earlier, or since
// it began.
func rulesSince(names []string, of []outcomes, earlierNames []string, earlier []outcomes) []outcomes {
	d := slices.Clone(of)
	for i, name := range names {
		j := i
		if j >= len(earlierNames) || earlierNames[j] != name {
			j = slices.Index(earlierNames, name)
		}
		if j >= 0 {
			d[i] = of[i].since(earlier[j])
		}
	}
	return d
}

// keep appends x to list and keeps its last most elements.
func keep[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, x)
}

func (h *history) init(e *Engine) {
	h.second = e.measure(new(ruleNames))
	h.minute, h.began = h.second, h.second.to
	h.marks = []api.Mark{{Time: e.started.UTC(), Type: Started}}
}

// sample adds to the history until the engine is closed.
func (e *Engine) sample() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	h := &e.history
	for n := 1; ; n++ {
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		x := e.measure(h.second.names)
		h.seconds = keep(h.seconds, x.since(&h.second), keptSeconds)
		h.second = x
		if n%60 == 0 {
			h.minutes = keep(h.minutes, x.since(&h.minute), keptMinutes)
			h.minute = x
		}
		h.mu.Unlock()
		if n%int(hotSample/time.Second) == 0 {
			e.sampleHot()
		}
	}
}

// measure returns what was counted since the start. Its names are was if that is still right.
func (e *Engine) measure(was *ruleNames) part {
	t := e.Totals()
	x := part{from: e.started, to: time.Now(), names: new(ruleNames), counts: counts{All: outcomes{t.Allowed, t.Refused, t.Banned, t.Unmatched, t.Errors}}}
	stats := e.limiter.Stats().Rules
	for i := range stats[:min(len(stats), keptRules)] {
		r := &stats[i]
		x.names.Rules, x.Rules = append(x.names.Rules, r.Rule), append(x.Rules, outcomes{r.Allowed, r.Refused, r.Banned, r.Shadow, r.BansStarted})
	}
	hot := e.rules.Load().hot
	for _, h := range hot[:min(len(hot), keptHot)] {
		c := h.use.caches()
		x.names.Hot, x.Hot = append(x.names.Hot, h.Name), append(x.Hot, outcomes{h.keys.Stats().Events, c.Hits, c.Misses, c.Loads, c.Stale})
	}
	if x.names.equal(was) {
		x.names = was
	}
	return x
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

// Rates returns the decisions of the last span, from a second to a day, in at most points
// intervals of equal width, oldest first. If the engine and what was restored are younger,
// there are fewer, and the oldest is shorter. For more than two minutes the intervals are
// whole minutes, except the newest. With perRule, points times the number of rules, hot ones
// included, is at most 8,192.
func (e *Engine) Rates(span time.Duration, points int, perRule bool) ([]api.Rate, error) {
	if span < time.Second || span > 24*time.Hour {
		return nil, errorf(api.BadArg, "span: %v: must be 1s to 24h", span)
	}
	if points < 1 || points > keptMinutes {
		return nil, errorf(api.BadArg, "points: %d: must be 1 to %d", points, keptMinutes)
	}
	file := e.rules.Load().file
	if rules := min(file.Limits.Len(), keptRules) + min(file.Hot.Len(), keptHot); perRule && points*rules > maxRuleRates {
		return nil, errorf(api.BadArg, "points: %d: must be 1 to %d for the rates of %d rules", points, maxRuleRates/rules, rules)
	}
	h := &e.history
	h.mu.Lock()
	parts := slices.Clone(h.seconds)
	if span > keptSeconds*time.Second {
		parts = h.wholeMinutes()
	}
	h.mu.Unlock()
	return ratesOf(parts, span, points, perRule), nil
}

// wholeMinutes returns the minutes, and what has come since the last of them.
//
// REQUIRES: h.mu.
func (h *history) wholeMinutes() []part {
	parts := slices.Clone(h.minutes)
	if h.second.to.After(h.minute.to) {
		parts = append(parts, h.second.since(&h.minute))
	}
	return parts
}

// ratesOf adds parts up to intervals of about span/points, before the end of the last part.
func ratesOf(parts []part, span time.Duration, points int, perRule bool) []api.Rate {
	rates := []api.Rate{}
	width, last := span/time.Duration(points), -1
	for i := range parts {
		p := &parts[i]
		// Samples are never taken quite on time.
		age := int((parts[len(parts)-1].to.Sub(p.to) + time.Second/2) / width)
		if age >= points {
			continue
		}
		if age != last {
			r := api.Rate{From: p.from.UTC(), Rules: make(map[string]api.RuleTotals), Hot: make(map[string]api.HotTotals)}
			if len(rates) > 0 { // a server that was down has decided nothing
				r.From = rates[len(rates)-1].To
			}
			rates, last = append(rates, r), age
		}
		r := &rates[len(rates)-1]
		r.To, r.All = p.to.UTC(), allPlus(r.All, p.All)
		if !perRule {
			continue
		}
		for i, name := range p.names.Rules {
			r.Rules[name] = rulePlus(r.Rules[name], p.Rules[i])
		}
		for i, name := range p.names.Hot {
			r.Hot[name] = hotPlus(r.Hot[name], p.Hot[i])
		}
	}
	return rates
}

func allPlus(t api.Totals, o outcomes) api.Totals {
	return api.Totals{Allowed: t.Allowed + o[0], Refused: t.Refused + o[1], Banned: t.Banned + o[2], Unmatched: t.Unmatched + o[3], Errors: t.Errors + o[4]}
}

func rulePlus(t api.RuleTotals, o outcomes) api.RuleTotals {
	return api.RuleTotals{Allowed: t.Allowed + o[0], Refused: t.Refused + o[1], Banned: t.Banned + o[2], Shadow: t.Shadow + o[3], Bans: t.Bans + o[4]}
}

func hotPlus(t api.HotTotals, o outcomes) api.HotTotals {
	return api.HotTotals{
		Events:      t.Events + o[0],
		CacheCounts: api.CacheCounts{Hits: t.Hits + o[1], Misses: t.Misses + o[2], Loads: t.Loads + o[3], Stale: t.Stale + o[4]},
	}
}

// The types of marks.
const (
	Started      = "start"
	Reloaded     = "reload"
	ReloadFailed = "failed" // the rules stay as they were
	BannedByHand = "ban"
	EndedByHand  = "unban"
)

// byHand is within which time bans by hand have one mark, so that a script does not fill them.
const byHand = 10 * time.Second

// mark adds a mark of now.
func (e *Engine) mark(typ string) {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = keep(h.marks, api.Mark{Time: time.Now().UTC(), Type: typ}, keptMarks)
}

// markBan adds a ban by hand, or the end of one, to the last mark of this type, or a mark of
// its own.
func (e *Engine) markBan(typ string) {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	since := h.handled[typ]
	if h.handled == nil {
		h.handled = make(map[string]time.Time)
	}
	h.handled[typ] = now
	if now.Sub(since) < byHand {
		for i := range slices.Backward(h.marks) {
			if h.marks[i].Type == typ {
				h.marks[i].Bans++
				return
			}
		}
	}
	// Starts and reloads are kept longer than these.
	if isBan := func(m api.Mark) bool { return m.Bans > 0 }; len(h.marks) >= keptMarks && slices.ContainsFunc(h.marks, isBan) {
		i := slices.IndexFunc(h.marks, isBan)
		h.marks = slices.Delete(h.marks, i, i+1)
	}
	h.marks = keep(h.marks, api.Mark{Time: now.UTC(), Type: typ, Bans: 1}, keptMarks)
}

// Marks returns the newest marks of the last span, up to 256, the oldest first. Restored
// marks are among them.
func (e *Engine) Marks(span time.Duration) []api.Mark {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	from := time.Now().Add(-span)
	i, _ := slices.BinarySearchFunc(h.marks, from, func(m api.Mark, t time.Time) int { return m.Time.Compare(t) })
	return append([]api.Mark{}, h.marks[i:]...)
}
