package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// ExplainConfig configures an [Explain]. Rules are required; WhatIfs of the Config
// must not be set.
type ExplainConfig struct {
	Config

	// Value selects the event: a value of Config.Key, or of a field in the key of a
	// rule, such as a user or a path.
	Value string

	// At selects the last event of Value at or before that time; whole seconds mean the
	// end of the second. By default it is the last event that was refused, or the last
	// event if none was.
	At Bound
}

// An Explanation contains the reasons of a decision about an event in a log. Its JSON
// is the report of lately explain --json.
type Explanation struct {
	AssumedTimes
	Cut     *CutReport `json:"cut,omitempty"`
	Value   api.Key    `json:"value"`
	Events  int64      `json:"events"`  // of Value, that a rule judged
	Refused int64      `json:"refused"` // of these
	Event   LogLine    `json:"event"`   // the one that is explained
	Allowed bool       `json:"allowed"`
	Rule    string     `json:"rule,omitempty"` // that decided

	// NextPasses is the time from which an event like the refused one is allowed, if
	// no other comes before. It is nil if the event was allowed, or if waiting does
	// not help.
	NextPasses *Epoch `json:"next_passes,omitempty"`

	// Rules are the results of each rule that judged the event: the deciding rule
	// first, the others in the order of the file.
	Rules []RuleExplanation `json:"rules"`

	Problems []string `json:"problems,omitempty"`
}

// A LogLine is the position of an event in a log.
type LogLine struct {
	T    Epoch  `json:"t"`
	File string `json:"file"`
	Line int64  `json:"line"`
}

// A RuleExplanation is the result of one rule for an event.
type RuleExplanation struct {
	Name     string   `json:"name"`
	Sentence string   `json:"sentence"` // what the rule means
	Fields   []string `json:"fields"`
	api.Key
	Mode    string `json:"mode,omitempty"` // "shadow"
	Refused bool   `json:"refused"`
	Missing string `json:"missing,omitempty"` // the field that the event lacks, if it is refused for that
	Limit   uint64 `json:"limit"`             // see ratelimit.Outcome

	// Counted are the events in the window of the limit, oldest first, at most the last
	// 1,000, including the explained event if it was counted. They alone determine the
	// limit's decision.
	Counted        []LogLine `json:"counted"`
	CountedLeftOut int64     `json:"counted_left_out,omitempty"`

	// Ban is the ban that refused the event.
	Ban *BanExplanation `json:"ban,omitempty"`
}

// A BanExplanation describes the ban that refused an event.
type BanExplanation struct {
	Start LogLine `json:"start"` // the event that started it
	Until Epoch   `json:"until"`

	// Counted are the hits or refusals before Start that the ban counted, oldest
	// first, at most the last 1,000.
	Of             string    `json:"of"` // "hits" or "refusals"
	Counted        []LogLine `json:"counted"`
	CountedLeftOut int64     `json:"counted_left_out,omitempty"`
}

// maxCounted is how many events of a window are reported.
const maxCounted = 1000

// Explain judges the events of c.Files under c.Rules as [Run] does, and explains one
// decision. Its errors are those of Run, and an [InputError] if no event has the value.
func Explain(ctx context.Context, c ExplainConfig) (*Explanation, error) {
	if c.Rules == nil || len(c.WhatIfs) > 0 {
		return nil, errors.New("--rules: missing: must be a rules file")
	}
	if c.Events != nil {
		return nil, errors.New("events: must not be set: an explanation has lines of files")
	}
	if c.Value == "" {
		return nil, errors.New("--key: missing: must be a client or another value, such as 192.0.2.1")
	}
	x := &explaining{config: &c}
	file := c.Rules
	c.Rules = nil
	r, err := newRun(c.Config, file)
	if err != nil {
		return nil, err
	}
	r.positions, r.rulesets[0].trace = true, x.add
	if x.events, err = r.load(ctx); err != nil {
		return nil, err
	}
	if err := x.checkRules(); err != nil {
		return nil, err
	}
	x.begin(x.judgings[0])
	if err := x.judgeAll(ctx); err != nil {
		return nil, err
	}
	if x.found.event < 0 {
		return nil, &InputError{append(x.report.Problems, fmt.Sprintf("--key %s: no event of it is judged by a rule%s", c.Value, x.before()))}
	}
	return x.explanation(), nil
}

// explaining records the events that rules count while a log is judged.
type explaining struct {
	*events
	shown  string // the digest of the value, if that is what keys have
	config *ExplainConfig
	j      *judging
	asked  int64    // the time of At
	at     int64    // the last time that it stands for
	ofKey  []bool   // which values of Config.Key are the one
	ofRule [][]bool // and which keys of each rule have it

	reader    *eventReader
	trails    [][]trail // by rule and number of the key
	n, denied int64
	found     foundEvent
}

// A trail is the events of a key of a rule that count.
type trail struct {
	counted []int32          // all that were charged to the limits
	strikes []int32          // hits or refusals since the last ban began
	values  map[string]int32 // distinct values, and the last event of each
	ban     *banTrail
}

type banTrail struct {
	start   int32
	strikes []int32
}

// A foundEvent is the event to explain, with the results of the rules.
type foundEvent struct {
	event    int
	decision ratelimit.Decision
	rules    []foundRule
}

type foundRule struct {
	ratelimit.Outcome
	key     uint32
	counted int // how many events had been charged, the event itself among them
	ban     *banTrail
}

// begin finds the keys that have the value.
func (x *explaining) begin(j *judging) {
	x.j, x.found.event = j, -1
	x.reader = x.newEventReader(j.limits.Internal().Fields())
	_, last, _ := x.span()
	x.at = last
	if x.config.At != (Bound{}) {
		x.asked = x.config.At.nanos(last)
		x.at = x.asked
		if x.at%int64(time.Second) == 0 {
			x.at += int64(time.Second) - 1
		}
	}
	for id := range x.top.keys.texts {
		x.ofKey = append(x.ofKey, id > 0 && x.hasValue(x.run.key, x.top.keys.texts[id]))
	}
	for i := range j.rules {
		keys := j.rules[i].keys
		has := make([]bool, len(keys.texts))
		for id := 1; id < len(has); id++ {
			has[id] = x.hasValue(j.rules[i].Key, keys.texts[id])
		}
		x.ofRule = append(x.ofRule, has)
		x.trails = append(x.trails, make([]trail, len(keys.texts)))
	}
}

// hasValue reports whether key, which k has made, has the value to explain, or its digest if that is hashed.
func (x *explaining) hasValue(k match.Key, key string) bool {
	if keyvalue.Has(k, []byte(key), x.config.Value) {
		return true
	}
	digest := x.run.intake.Digest(x.config.Value)
	if digest == "" || !keyvalue.Has(k, []byte(key), digest) {
		return false
	}
	x.shown = digest
	return true
}

// add is called for each event in the order of judging.
func (x *explaining) add(event int, d ratelimit.Decision, own []ratelimit.Outcome) {
	wanted := len(own) > 0 && x.ofKey[x.top.keys.ids[event]]
	for k := range own {
		wanted = wanted || x.ofRule[own[k].Rule][x.j.rules[own[k].Rule].keys.ids[event]]
	}
	for k := range own {
		x.count(event, d, &own[k])
	}
	if !wanted {
		return
	}
	x.n++
	if !d.Allowed {
		x.denied++
	}
	f := &x.found
	if x.times[event] > x.at || x.config.At == (Bound{}) && d.Allowed && f.event >= 0 && !f.decision.Allowed {
		return
	}
	f.event, f.decision, f.rules = event, d, f.rules[:0]
	for k := range own {
		id := x.j.rules[own[k].Rule].keys.ids[event]
		tr := &x.trails[own[k].Rule][id]
		found := foundRule{Outcome: own[k], key: id, counted: len(tr.counted), ban: tr.ban}
		if own[k].Refused && found.counted > 0 && int(tr.counted[found.counted-1]) == event {
			found.counted-- // it was refused for those before it
		}
		f.rules = append(f.rules, found)
	}
}

// count adds an event to the trail of a rule.
func (x *explaining) count(event int, d ratelimit.Decision, o *ratelimit.Outcome) {
	rule := x.j.rules[o.Rule].Rule
	tr := &x.trails[o.Rule][x.j.rules[o.Rule].keys.ids[event]]
	if o.Skipped || o.Missing != "" || o.Banned && !o.Started {
		return
	}
	if o.Charged || rule.CountRefused && !o.Banned && (d.Allowed || !rule.Shadow) {
		tr.counted = append(tr.counted, int32(event))
	}
	switch {
	case o.Started:
		if rule.Ban.Of == ratelimit.Distinct {
			tr.strikes = x.lastOfValues(tr.values, event, rule.Ban.Span)
		}
		tr.ban = &banTrail{int32(event), lastOf(tr.strikes, rule.Ban.After)}
		tr.strikes, tr.values = nil, nil
	case rule.Ban != nil && rule.Ban.Of == ratelimit.Distinct:
		if v := x.reader.event(event).GetNamed(rule.Ban.Field); len(v) > 0 {
			if tr.values == nil {
				tr.values = make(map[string]int32)
			}
			tr.values[string(v)] = int32(event)
		}
	case rule.Ban != nil && (rule.Ban.Of == ratelimit.Hits || o.Refused):
		tr.strikes = append(tr.strikes, int32(event))
	}
}

// lastOfValues returns the last event of each value in the window of span at event.
func (x *explaining) lastOfValues(values map[string]int32, event int, span time.Duration) (events []int32) {
	for _, last := range values {
		if x.times[last] > x.times[event]-int64(span) {
			events = append(events, last)
		}
	}
	slices.Sort(events)
	return events
}

// before returns the condition of At as the end of a sentence.
func (x *explaining) before() string {
	if x.config.At == (Bound{}) {
		return ""
	}
	return fmt.Sprintf(" at or before %s UTC", exactStamp(epoch(x.asked), time.UTC))
}

func (x *explaining) explanation() *Explanation {
	f := &x.found
	out := &Explanation{
		AssumedTimes: x.report.AssumedTimes, Cut: x.report.Cut, Value: api.KeyOf(cmp.Or(x.shown, x.config.Value)), Events: x.n, Refused: x.denied, Event: x.line(int32(f.event)),
		Allowed: f.decision.Allowed, Rule: f.decision.Rule, Rules: []RuleExplanation{}, Problems: x.report.Problems,
	}
	if !out.Allowed && f.decision.RetryAfter != ratelimit.Never {
		next := Epoch{out.Event.T.Add(f.decision.RetryAfter)}
		out.NextPasses = &next
	}
	for i := range f.rules {
		out.Rules = append(out.Rules, x.rule(&f.rules[i]))
	}
	decides := slices.IndexFunc(out.Rules, func(r RuleExplanation) bool { return r.Name == out.Rule })
	if decides > 0 {
		rule := out.Rules[decides]
		out.Rules = slices.Insert(slices.Delete(out.Rules, decides, decides+1), 0, rule)
	}
	return out
}

func (x *explaining) rule(f *foundRule) RuleExplanation {
	o := &x.j.rules[f.Rule]
	tr := &x.trails[f.Rule][f.key]
	out := RuleExplanation{
		Name: o.Name, Sentence: sentence.Limit(o.Rule), Fields: o.Key.Fields(), Key: o.key(f.key),
		Refused: f.Refused, Missing: f.Missing, Limit: f.Limit, Counted: []LogLine{},
	}
	if o.Shadow {
		out.Mode = "shadow"
	}
	if f.Missing != "" {
		out.Key = x.partialKey(o.Key)
		return out
	}
	if f.Banned {
		out.Ban = &BanExplanation{Start: x.line(f.ban.start), Until: Epoch{f.BannedUntil}, Of: o.Ban.Of.String()}
		out.Ban.Counted, out.Ban.CountedLeftOut = x.lines(f.ban.strikes)
	} else if !f.Skipped && len(o.Limits) > 0 {
		out.Counted, out.CountedLeftOut = x.lines(x.window(o.Rule, f, tr.counted[:f.counted]))
	}
	return out
}

// partialKey returns a key that lacks fields of the explained event, with [intake.Missing] in their place.
func (x *explaining) partialKey(k match.Key) api.Key {
	values, ev := k.Fields(), x.reader.event(x.found.event)
	for i, name := range values {
		values[i] = cmp.Or(string(ev.GetNamed(name)), intake.Missing)
	}
	return api.KeyOf(values...)
}
