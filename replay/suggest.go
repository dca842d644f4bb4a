package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// SuggestConfig says for which logs to suggest limits. Rules and WhatIfs of the
// Config must not be set. Limits are for the keys of Config.Key.
type SuggestConfig struct {
	Config

	// Share is the percentage of keys that a limit must never refuse: more than 0, at
	// most 100, with at most 4 decimals. Default 99.9.
	Share float64

	// Groups is conditions, such as "path /login": the events of each get limits of
	// their own, beside those for all events.
	Groups []string
}

// A Suggestion is limits that fit a log. Its JSON is the report of lately suggest --json.
type Suggestion struct {
	Files    []string        `json:"files"`
	Cut      *CutReport      `json:"cut,omitempty"`
	Events   int64           `json:"events"`
	First    *Epoch          `json:"first,omitempty"`
	Last     *Epoch          `json:"last,omitempty"`
	Field    string          `json:"field"` // Config.Key
	Share    float64         `json:"share"`
	Limits   []SuggestedRule `json:"limits"`
	All      SuggestedTotals `json:"all"`   // what all of them do together
	Rules    string          `json:"rules"` // the rules file, with comments
	Problems []string        `json:"problems,omitempty"`
}

// SuggestedTotals is what one or all of the suggested rules do to the log.
type SuggestedTotals struct {
	Keys        int64 `json:"keys"`         // keys that have such events
	KeysRefused int64 `json:"keys_refused"` // those that are ever refused
	Events      int64 `json:"events"`
	Refused     int64 `json:"refused"`
	Bans        int64 `json:"bans"`
	BannedKeys  int64 `json:"banned_keys"`
}

// A SuggestedRule is the least limit for a span that refuses no more keys than it may.
// Both halves of that were judged: its own limit, and that of one less.
type SuggestedRule struct {
	Name        string  `json:"name"`
	Group       string  `json:"group,omitempty"`
	N           uint64  `json:"n"`
	SpanSeconds float64 `json:"span_seconds"`
	SuggestedTotals

	// OneLessRefuses is how many keys a limit of N-1 refuses: too many.
	OneLessRefuses int64 `json:"one_less_refuses_keys"`

	// AlwaysEnough is, for a log whose times lack fractions, a limit that refuses no
	// more keys than it may, whatever the fractions are.
	AlwaysEnough uint64 `json:"always_enough,omitempty"`

	span        time.Duration
	ban         *ratelimit.Ban
	needed      int64 // how many keys must never be refused
	mostRefused []BannedKey
}

// suggestSpans are the spans for which limits are suggested, if the log is as long.
var suggestSpans = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

// Suggest returns, for each span and group, the least limit by which a share of the keys
// is never refused, and a rules file of these limits. Each limit was judged on the log as
// [Run] judges it, and so was that of one less. Errors are those of Run.
func Suggest(ctx context.Context, c SuggestConfig) (*Suggestion, error) {
	if c.Rules != nil || len(c.WhatIfs) > 0 {
		return nil, errors.New("suggest: rules: must not be given")
	}
	c.Share = cmp.Or(c.Share, 99.9)
	parts := math.Round(c.Share * 1e4)
	if !(parts >= 1 && parts <= 1e6) || math.Abs(parts-c.Share*1e4) > 1e-6 {
		return nil, fmt.Errorf("--share: %v: must be a percentage of more than 0 and at most 100, with at most 4 decimals", c.Share)
	}
	r, err := newRun(c.Config)
	if err != nil {
		return nil, err
	}
	s := &suggesting{share: int64(parts)}
	if err := s.addGroups(r, c.Groups); err != nil {
		return nil, err
	}
	if s.events, err = r.load(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.search(ctx); err != nil {
		return nil, err
	}
	return s.suggestion(ctx, c.Share)
}

// suggesting is the state of one Suggest.
type suggesting struct {
	*events
	key    match.Key
	share  int64 // in millionths
	groups []suggestGroup
	trials []*trial
}

// A suggestGroup is events that have limits of their own.
type suggestGroup struct {
	text string // as it was given; "" for all events
	when match.When
	name string // begins the names of its rules
	need int64  // how many of its keys must never be refused

	from []int // see keyColumn.byKey
	own  []int32
}

// addGroups compiles the groups of all events and of these conditions, and makes r keep
// the fields that they look at.
func (s *suggesting) addGroups(r *run, texts []string) (err error) {
	if s.key, err = match.NewKey(match.Fold{}, r.Key); err != nil {
		return err
	}
	s.groups = []suggestGroup{{name: ruleName(r.Key)}}
	fields, err := formatFields(r.Format)
	if err != nil {
		return err
	}
	for _, text := range texts {
		text = strings.TrimSpace(text)
		field, pattern, ok := strings.Cut(text, " ")
		var when match.When
		if err = when.Add(field, strings.TrimSpace(pattern)); err != nil || !ok {
			return fmt.Errorf("--group: %q: must be a field and a pattern, such as \"path /login\" or \"status 4xx\"", text)
		}
		if err := knownField("--group", field, fields); err != nil {
			return err
		}
		s.groups = append(s.groups, suggestGroup{text: text, when: when, name: ruleName(text)})
	}
	for i := range s.groups {
		g := &s.groups[i]
		rs, err := newRuleset(g.option(r.Key), []ratelimit.Rule{s.rule(g, ratelimit.MaxSliding, time.Second)}, nil)
		if err != nil {
			return err
		}
		r.rulesets = append(r.rulesets, rs)
	}
	r.fields = r.usedFields()
	return nil
}

func (g *suggestGroup) option(key string) string {
	if g.text == "" {
		return "--key " + key
	}
	return "--group " + g.text
}

// ruleName returns text with what cannot be in the name of a rule replaced.
func ruleName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.') {
			return r
		}
		return '-'
	}, text)
	const most = 48
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.Trim(name[:min(len(name), most)], "-")
}

func (s *suggesting) rule(g *suggestGroup, n uint64, span time.Duration) ratelimit.Rule {
	return ratelimit.Rule{Name: g.name, Key: s.key, When: g.when, Limits: []ratelimit.Limit{{N: n, Span: span}}}
}

// prepare finds the events and keys of each group, and with which limits its search
// begins. Groups without events are left out.
func (s *suggesting) prepare(ctx context.Context) error {
	if err := s.checkRules(); err != nil {
		return err
	}
	if err := s.judgeAll(ctx); err != nil {
		return err
	}
	first, last, _ := s.span()
	kept := s.groups[:0]
	for i := range s.groups {
		g := s.groups[i]
		at := slices.IndexFunc(s.judgings, func(j *judging) bool { return j.option == g.option(s.run.Key) })
		if at < 0 {
			continue
		}
		g.from, g.own = s.judgings[at].columns[0].byKey(s.judgings[at].outcomes.has)
		keys := int64(0)
		for id := range g.from[1:] {
			keys += int64(min(g.from[id+1]-g.from[id], 1))
		}
		if keys == 0 {
			s.problem(fmt.Sprintf("%s: no event matches", g.option(s.run.Key)))
			continue
		}
		g.need = (keys*s.share + 999_999) / 1_000_000
		kept = append(kept, g)
	}
	s.groups = kept
	for i := range s.groups {
		for _, span := range suggestSpans {
			if span == suggestSpans[0] || int64(span) <= last-first {
				s.trials = append(s.trials, s.newTrial(&s.groups[i], span))
			}
		}
	}
	return ctx.Err()
}

// judge judges the log under each of these rules alone.
func (s *suggesting) judge(ctx context.Context, rs []ratelimit.Rule) error {
	sets := make([]ruleset, len(rs))
	for i, rule := range rs {
		var err error
		if sets[i], err = newRuleset("", []ratelimit.Rule{rule}, nil); err != nil {
			return err
		}
	}
	s.run.rulesets = sets
	if err := s.restart(ctx); err != nil {
		return err
	}
	return s.judgeAll(ctx)
}

// search judges limits until each trial has found its own.
func (s *suggesting) search(ctx context.Context) error {
	for {
		var asked []*trial
		var rs []ratelimit.Rule
		for _, t := range s.trials {
			if n, ok := t.next(); ok {
				asked, rs = append(asked, t), append(rs, s.rule(t.suggestGroup, n, t.span))
			}
		}
		if len(asked) == 0 {
			return nil
		}
		if err := s.judge(ctx, rs); err != nil {
			return err
		}
		for i, t := range asked {
			totals := s.judgings[i].totals()
			t.judged(rs[i].Limits[0].N, totals.Keys, totals.KeysRefused)
		}
	}
}

// totals sums up what the rules of j, which have one key, do.
func (j *judging) totals() (sum SuggestedTotals) {
	judged, refusals := make([]bool, len(j.columns[0].texts)), make([]bool, len(j.columns[0].texts))
	for i, o := range j.outcomes {
		if o == 0 {
			continue
		}
		id := j.columns[0].ids[i]
		sum.Events++
		judged[id] = true
		if o >= refused {
			sum.Refused++
			refusals[id] = true
		}
	}
	for id := range judged {
		if judged[id] {
			sum.Keys++
		}
		if refusals[id] {
			sum.KeysRefused++
		}
	}
	banned := make(map[uint32]bool)
	for i := range j.rules {
		for _, start := range j.rules[i].banStarts() {
			sum.Bans++
			banned[start.key] = true
		}
	}
	sum.BannedKeys = int64(len(banned))
	return sum
}

// banOf returns the ban beside a limit: of keys that make more than twice the limit, and
// no shorter than its span. It refuses no key that the limit does not refuse.
func banOf(n uint64, span time.Duration) *ratelimit.Ban {
	if n > ratelimit.MaxExact {
		return nil
	}
	return &ratelimit.Ban{After: n, Of: ratelimit.Refusals, Span: span, For: max(span, 10*time.Minute)}
}

// suggestion judges the limits that were found with their bans, each alone and then the
// rules file of all.
func (s *suggesting) suggestion(ctx context.Context, share float64) (*Suggestion, error) {
	r := s.run
	out := &Suggestion{Files: r.Files, Cut: s.report.Cut, Events: s.report.Events, Field: r.Key, Share: share, Limits: []SuggestedRule{}}
	if first, last, ok := s.span(); ok {
		out.First, out.Last = new(epoch(first)), new(epoch(last))
	}
	rs := make([]ratelimit.Rule, len(s.trials))
	for i, t := range s.trials {
		rs[i] = s.rule(t.suggestGroup, t.hi, t.span)
		rs[i].Ban = banOf(t.hi, t.span)
	}
	if err := s.judge(ctx, rs); err != nil {
		return nil, err
	}
	names := make(map[string]int)
	for i, t := range s.trials {
		rule := SuggestedRule{
			Name: t.name + "-" + rules.FormatDuration(t.span), Group: t.text, N: t.hi, SpanSeconds: t.span.Seconds(),
			SuggestedTotals: s.judgings[i].totals(), OneLessRefuses: t.atLo, AlwaysEnough: t.always, span: t.span, ban: rs[i].Ban, needed: t.need,
		}
		if names[rule.Name]++; names[rule.Name] > 1 {
			rule.Name += fmt.Sprint("-", names[rule.Name])
		}
		own := &s.judgings[i].rules[0]
		refusals := own.refused
		for _, id := range own.keys.largest(3, refusals) {
			rule.mostRefused = append(rule.mostRefused, BannedKey{Key: own.key(id), Refused: refusals[id]})
		}
		out.Limits = append(out.Limits, rule)
	}
	if len(out.Limits) == 0 {
		return nil, &InputError{append(s.report.Problems, "no event: there is nothing to suggest limits for")}
	}
	text := out.file()
	file, err := rules.Parse("suggested rules", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("suggest: %w", err)
	}
	r.rulesets = []ruleset{rulesOf(file)}
	if err := s.restart(ctx); err != nil {
		return nil, err
	}
	if err := s.judgeAll(ctx); err != nil {
		return nil, err
	}
	out.All = s.judgings[0].totals()
	out.Rules = out.header() + text
	out.Problems = s.report.Problems
	return out, nil
}
