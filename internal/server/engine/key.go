package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// Inspect reports on the key of that value under everything that counts by that field
// alone, or of these values under everything that counts by these fields. A counter
// that was made by adding to it counts by the field "key". Nothing is changed.
func (e *Engine) Inspect(fields, key []string) (*api.KeyReport, error) {
	if len(fields) == 0 || len(fields) != len(key) {
		return nil, errorf(api.BadArg, "there are %d fields and %d values; allowed is as many of one as of the other, from 1", len(fields), len(key))
	}
	if err := e.book.Load().fields.checkNames(fields); err != nil {
		return nil, err
	}
	r := &api.KeyReport{Fields: fields, Key: api.KeyOf(key...), Counters: []api.KeyWindow{}, Rules: []api.KeyDecision{}, Bans: []api.Ban{}}
	now, l := e.now(), e.limiter.Load()
	for _, c := range e.book.Load().counters {
		if !slices.Equal(c.Key.Fields(), fields) {
			continue
		}
		k, err := joined(c.Key, key)
		if err != nil {
			return nil, err
		}
		r.Key = api.KeyOf(values(c.Key, string(k))...)
		reading := c.table.ReadAt(now, string(k))
		for _, span := range c.Spans {
			w := api.KeyWindow{Counter: c.Name, Span: api.MillisOf(span)}
			w.Lo, w.Hi, _ = reading.BoundsLast(span)
			w.Estimate, _ = reading.EstimateLast(span)
			w.Slots = slotsOf(reading, span, w.Hi-w.Lo)
			r.Counters = append(r.Counters, w)
		}
	}
	set := l.Set()
	for i := range set.Len() {
		rule := set.Rule(i)
		if !slices.Equal(rule.Key.Fields(), fields) {
			continue
		}
		k, err := joined(rule.Key, key)
		if err != nil {
			return nil, err
		}
		parts := values(rule.Key, string(k))
		r.Key = api.KeyOf(parts...)
		judge, err := l.Rule(rule.Name)
		if err != nil {
			continue // the rule has gone meanwhile
		}
		d := judge.PeekN(now, 1, key...)
		if d.Unmatched && d.Err != nil {
			continue
		}
		r.Rules = append(r.Rules, api.KeyDecision{Rule: rule.Name, Decision: DecisionOf(&d)})
		ban, held, err := e.banOf(rule.Name, parts)
		if err != nil {
			return nil, &Error{api.Failed, err.Error()}
		}
		if held {
			r.Bans = append(r.Bans, BanOf(&ban))
		}
	}
	return r, nil
}

// banOf returns the ban of a key that holds under a rule.
func (e *Engine) banOf(rule string, key []string) (ratelimit.BanRecord, bool, error) {
	ban, held, err := e.bans().Get(rule, key...)
	if _, gone := errors.AsType[*ratelimit.RuleError](err); gone {
		return ban, false, nil
	}
	return ban, held, err
}

// slotsOf returns the slots of a window of that span; partly is what the one has
// that it begins in.
func slotsOf(reading lately.Reading, span time.Duration, partly uint64) []api.Slot {
	slots := make([]api.Slot, 0, counterSlots+1)
	begins := reading.At().Add(-span)
	for start, n := range reading.Slots(span) {
		if len(slots) == 0 && start.Add(-1).After(begins) {
			slots = append(slots, api.Slot{Start: start.Add(-slotOf(span)).UTC(), Count: partly})
		}
		slots = append(slots, api.Slot{Start: start.UTC(), Count: n})
	}
	return slots
}
