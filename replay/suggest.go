package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// SuggestConfig configures a [Suggest]. Rules and WhatIfs of the Config must
// not be set. Limits are for the keys of Config.Key.
type SuggestConfig struct {
	Config

	// Share, if not 0, is the percentage of all keys that a limit must never refuse: at most
	// 100, with at most 4 decimals. By default it must never refuse any key except
	// outliers that look like attackers.
	Share float64

	// Groups are conditions, such as "path /login": the events of each group get
	// their own limits, in addition to those for all events.
	Groups []string
}

// A Suggestion has limits that fit a log. Its JSON is the report of lately suggest
// --json.
type Suggestion struct {
	LogEvents
	Field    string          `json:"field"` // Config.Key
	Share    float64         `json:"share,omitempty"`
	Outliers []Outlier       `json:"outliers"` // the busiest first; none if Share is set
	Limits   []SuggestedRule `json:"limits"`
	All      SuggestedTotals `json:"all"`   // all limits together
	Rules    string          `json:"rules"` // the rules file, with comments
	Problems []string        `json:"problems,omitempty"`

	key match.Key // Field
}

// SuggestedTotals are the results of one or all suggested rules on the log.
type SuggestedTotals struct {
	Keys        int64 `json:"keys"`         // keys with such events
	KeysRefused int64 `json:"keys_refused"` // keys that are refused at least once

	// Outliers is the number of Keys that are outliers and look like attackers.
	Outliers        int64 `json:"outliers"`
	OutliersRefused int64 `json:"outliers_refused"`

	Events     int64 `json:"events"`
	Refused    int64 `json:"refused"`
	Bans       int64 `json:"bans"`
	BannedKeys int64 `json:"banned_keys"`
}

// A SuggestedRule is the smallest limit for a span that refuses no more keys than the
// [SuggestConfig] allows. Both N and N-1 were verified by a replay.
type SuggestedRule struct {
	Name        string  `json:"name"`
	Group       string  `json:"group,omitempty"`
	N           uint64  `json:"n"`
	SpanSeconds float64 `json:"span_seconds"`
	SuggestedTotals

	// OneLessRefuses is the number of keys that a limit of N-1 refuses: too
	// many.
	OneLessRefuses int64 `json:"one_less_refuses_keys"`

	// AlwaysEnough is, for a log whose times lack fractions, a limit that refuses no
	// more keys than allowed for any fractions.
	AlwaysEnough uint64 `json:"always_enough,omitempty"`

	span        time.Duration
	ban         *ratelimit.Ban
	auto        bool  // outliers are left out
	needed      int64 // how many keys must never be refused
	conditions  [][2]string
	mostRefused []refusedKey
}

// suggestSpans are the spans for which limits are suggested, if the log is as long.
var suggestSpans = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

// Suggest returns, for each span and group, the smallest limit that never refuses a key,
// except outliers that look like attackers or a share of the keys, and a rules file of these
// limits. Each limit N, and N-1, was verified by a replay. Without a Share, failed requests
// and logins get their own limits if an outlier has many of them, and the file allows the
// monitors. Errors are those of [Run].
func Suggest(ctx context.Context, c SuggestConfig) (*Suggestion, error) {
	if c.Rules != nil || len(c.WhatIfs) > 0 {
		return nil, errors.New("suggest: rules: must not be given")
	}
	auto := c.Share == 0
	c.Traffic = auto
	parts := math.Round(c.Share * 1e4)
	if !auto && !(parts >= 1 && parts <= 1e6) || math.Abs(parts-c.Share*1e4) > 1e-6 {
		return nil, fmt.Errorf("--share: %v: must be a percentage of more than 0 and at most 100, with at most 4 decimals", c.Share)
	}
	r, err := newRun(c.Config)
	if err != nil {
		return nil, err
	}
	s := &suggesting{outliers: []Outlier{}, auto: auto, share: cmp.Or(int64(parts), 1e6)}
	if err := s.addGroups(r, c.Groups); err != nil {
		return nil, err
	}
	r.suggests = true
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
	auto   bool  // outliers are left out
	share  int64 // in millionths
	groups []suggestGroup
	trials []*trial

	kinds    []OutlierKind // of the keys of all events, by number; "" for ordinary ones
	outliers []Outlier
	logins   []string // the paths that outliers log in by
}

func (s *suggesting) rule(g *suggestGroup, n uint64, span time.Duration) ratelimit.Rule {
	return ratelimit.Rule{Name: g.name, Key: s.key, When: g.when, Limits: []ratelimit.Limit{{N: n, Span: span}}}
}

// all returns a rule that judges each event of g and refuses none.
func (s *suggesting) all(g *suggestGroup) ratelimit.Rule {
	return s.rule(g, limit.MaxN, time.Second)
}

// prepare finds the events and keys of each group, the outliers, and with which limits its
// search begins. Groups without events are left out.
func (s *suggesting) prepare(ctx context.Context) error {
	if err := s.checkRules(); err != nil {
		return err
	}
	if err := s.judgeAll(ctx); err != nil {
		return err
	}
	kept := s.groups[:0]
	for _, g := range s.groups {
		at := slices.IndexFunc(s.judgings, func(j *judging) bool { return j.option == g.option(s.run.Key) })
		if at < 0 {
			continue
		}
		g.take(s.judgings[at])
		if len(g.own) == 0 {
			s.problem(fmt.Sprintf("%s: no event matches", g.option(s.run.Key)))
			continue
		}
		kept = append(kept, g)
	}
	if s.groups = kept; len(kept) == 0 {
		return ctx.Err()
	}
	s.kinds = make([]OutlierKind, len(kept[0].keys.texts))
	if s.auto && kept[0].text == "" {
		s.findOutliers()
		if err := s.addOwnGroups(ctx); err != nil {
			return err
		}
	}
	first, last, _ := s.span()
	for i := range s.groups {
		g := &s.groups[i]
		keys := int64(0)
		for id := range g.from[1:] {
			if g.from[id+1] > g.from[id] && s.kinds[id].ordinary() {
				keys++
			}
		}
		g.need = (keys*s.share + 999_999) / 1_000_000
		for _, span := range suggestSpans {
			if (span == suggestSpans[0] || int64(span) <= last-first) && !(g.auto && span != time.Minute && span != time.Hour) {
				s.trials = append(s.trials, s.newTrial(g, span))
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
			totals := s.totals(s.judgings[i])
			t.judged(rs[i].Limits[0].N, totals.Keys-totals.Outliers, totals.KeysRefused-totals.OutliersRefused)
		}
	}
}

// totals sums up what the rules of j, which have one key, do to keys that are not allowed.
func (s *suggesting) totals(j *judging) (sum SuggestedTotals) {
	keys := len(j.columns[0].texts)
	judged, refusals := make([]int64, keys), make([]int64, keys)
	for i, o := range j.outcomes {
		if o != 0 {
			judged[j.columns[0].ids[i]]++
		}
		if o >= refused {
			refusals[j.columns[0].ids[i]]++
		}
	}
	for id, n := range judged {
		if n == 0 || s.kinds[id] == Monitor {
			continue
		}
		sum.Keys++
		sum.Events += n
		sum.Refused += refusals[id]
		sum.KeysRefused += min(refusals[id], 1)
		if !s.kinds[id].ordinary() {
			sum.Outliers++
			sum.OutliersRefused += min(refusals[id], 1)
		}
	}
	banned := make(map[uint32]bool)
	for i := range j.rules {
		for _, start := range j.rules[i].banStarts() {
			if s.kinds[start.key] != Monitor {
				sum.Bans++
				banned[start.key] = true
			}
		}
	}
	sum.BannedKeys = int64(len(banned))
	return sum
}

// banOf returns the ban beside a limit: of keys that make more than twice the limit, for ten
// times its span, from a minute to a day. It refuses no key that the limit does not refuse.
func banOf(n uint64, span time.Duration) *ratelimit.Ban {
	if n > limit.MaxLog {
		return nil
	}
	return &ratelimit.Ban{After: n, Of: ratelimit.Refusals, Span: span, For: max(span, min(max(10*span, time.Minute), 24*time.Hour))}
}

// suggestion judges the limits that were found with their bans, each alone and then the
// rules file of all.
func (s *suggesting) suggestion(ctx context.Context, share float64) (*Suggestion, error) {
	r := s.run
	out := &Suggestion{LogEvents: s.described(s.report.Events), Field: r.Key, key: s.key, Share: share, Outliers: s.outliers, Limits: []SuggestedRule{}}
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
		rule, ok := s.suggested(t, s.judgings[i], rs[i].Ban)
		if !ok {
			continue
		}
		if names[rule.Name]++; names[rule.Name] > 1 {
			rule.Name += fmt.Sprint("-", names[rule.Name])
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
	out.All = s.totals(s.judgings[0])
	out.Rules = out.header() + text
	out.Problems = s.report.Problems
	return out, nil
}

// suggested returns the rule that a trial has found, which j has judged with its ban. It returns false for a group that
// was not asked for, if the rule refuses no outlier, or none that the limit of all events does not refuse.
func (s *suggesting) suggested(t *trial, j *judging, ban *ratelimit.Ban) (rule SuggestedRule, ok bool) {
	totals := s.totals(j)
	if t.auto && (totals.OutliersRefused == 0 || slices.ContainsFunc(s.trials, func(all *trial) bool { return all.text == "" && all.span == t.span && all.hi <= t.hi })) {
		return rule, false
	}
	rule = SuggestedRule{
		Name: t.name + "-" + rulevalue.FormatDuration(t.span), Group: t.text, N: t.hi, SpanSeconds: t.span.Seconds(),
		SuggestedTotals: totals, OneLessRefuses: t.atLo, AlwaysEnough: t.always, span: t.span, ban: ban, needed: t.need,
		auto: s.auto, conditions: t.conditions,
	}
	own := &j.rules[0]
	for _, id := range own.keys.largest(3, own.refused) {
		if s.kinds[id] != Monitor {
			rule.mostRefused = append(rule.mostRefused, refusedKey{Key: own.key(id), refused: own.refused[id]})
		}
	}
	return rule, true
}
