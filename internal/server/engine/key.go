package engine

import (
	"errors"
	"slices"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Inspect reports on a key under everything that counts by these fields and no others.
// Dynamic counters count by the field "key". Nothing is changed.
func (e *Engine) Inspect(fields, key []string) (r api.KeyReport, err error) {
	if len(fields) == 0 || len(fields) != len(key) {
		return r, apierror.New(api.BadArg, "key: %d fields and %d values: must be as many of one as of the other, and at least 1", len(fields), len(key))
	}
	if err := e.rules.Load().fields.checkNames(fields); err != nil {
		return r, err
	}
	of, err := match.NewKey(match.Fold{}, fields...)
	if err != nil {
		return r, apierror.New(api.BadArg, "%v", err)
	}
	key = slices.Clone(key)
	if err := e.digest(&of, key, true); err != nil {
		return r, err
	}
	r = api.KeyReport{Fields: fields, Key: api.KeyOf(key...), Counters: []api.KeyWindow{}, Rules: []api.KeyDecision{}, Bans: []api.Ban{}, Hot: []api.HotKeyReport{}}
	if err := e.counters.Inspect(fields, key, &r); err != nil {
		return r, err
	}
	set := e.limiter.Set()
	for _, rule := range set.Rules() {
		if slices.Equal(rule.Key.Fields(), fields) {
			if err := e.inspectRule(rule, key, &r); err != nil {
				return r, err
			}
		}
	}
	return r, e.hot.Inspect(fields, key, &r)
}

// inspectRule adds the decision and the ban of a rule to r.
func (e *Engine) inspectRule(rule *ratelimit.Rule, key []string, r *api.KeyReport) error {
	k, err := keys.Join(nil, &rule.Key, key)
	if err != nil {
		return err
	}
	parts := keyvalue.All(rule.Key, string(k))
	r.Key = api.KeyOf(parts...)
	judge, err := e.limiter.Rule(rule.Name)
	if err != nil {
		return nil // a reload has removed the rule
	}
	d := judge.Peek(key...)
	if d.Unmatched && d.Err != nil {
		return nil
	}
	r.Rules = append(r.Rules, api.KeyDecision{Rule: rule.Name, Decision: DecisionOf(&d)})
	ban, held, err := e.limiter.Bans().Get(rule.Name, parts...)
	if _, removed := errors.AsType[*ratelimit.RuleError](err); removed {
		return nil
	}
	if held {
		r.Bans = append(r.Bans, bans.API(&ban))
	}
	return err
}
