package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/ratelimit"
)

// A KeyReport is what an engine knows of one key: the values of some fields.
type KeyReport struct {
	Fields   []string
	Key      []string // folded
	Counters []KeyWindow
	Rules    []KeyDecision
	Bans     []ratelimit.BanRecord
}

// A KeyWindow is what one window of a counter holds of a key. Its slots are all that
// have a part in it, the oldest first: the window begins in the first of them, which
// counts in Hi and not in Lo, unless it begins between two. So they add up to Hi.
type KeyWindow struct {
	Counter string
	Span    time.Duration
	Lo, Hi  uint64

	Estimate uint64 // between them: the figure to display
	Slots    []Slot
}

// A Slot is one slot of a window.
type Slot struct {
	Start time.Time
	Count uint64
}

// A KeyDecision is what a rule would say of the key's next event.
type KeyDecision struct {
	Rule     string
	Decision ratelimit.Decision
}

// Key reports on the key of that value under everything that counts by that field
// alone, or of these values under everything that counts by these fields. A counter
// that was made by adding to it counts by the field "key". Nothing is changed.
func (e *Engine) Key(fields, key []string) (*KeyReport, error) {
	if len(fields) == 0 || len(fields) != len(key) {
		return nil, errorf(BadArg, "there are %d fields and %d values; allowed is as many of one as of the other, from 1", len(fields), len(key))
	}
	if err := e.book.Load().fields.checkNames(fields); err != nil {
		return nil, err
	}
	r := &KeyReport{Fields: fields, Key: key}
	now, l := e.now(), e.limiter.Load()
	for _, c := range e.book.Load().counters {
		if !slices.Equal(c.Key.Fields(), fields) {
			continue
		}
		k, err := joined(c.Key, key)
		if err != nil {
			return nil, err
		}
		r.Key = values(c.Key, string(k))
		reading := c.table.ReadAt(now, string(k))
		for _, span := range c.Spans {
			w := KeyWindow{Counter: c.Name, Span: span}
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
		r.Key = values(rule.Key, string(k))
		judge, err := l.Rule(rule.Name)
		if err != nil {
			continue // the rule has gone meanwhile
		}
		d := judge.PeekN(now, 1, key...)
		if d.Unmatched && d.Err != nil {
			continue
		}
		r.Rules = append(r.Rules, KeyDecision{rule.Name, d})
		ban, held, err := e.banOf(rule.Name, r.Key)
		if err != nil {
			return nil, &Error{Failed, err.Error()}
		}
		if held {
			r.Bans = append(r.Bans, ban)
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
func slotsOf(reading lately.Reading, span time.Duration, partly uint64) []Slot {
	slots := make([]Slot, 0, counterSlots+1)
	begins := reading.At().Add(-span)
	for start, n := range reading.Slots(span) {
		if len(slots) == 0 && start.Add(-1).After(begins) {
			slots = append(slots, Slot{start.Add(-slotOf(span)), partly})
		}
		slots = append(slots, Slot{start, n})
	}
	return slots
}
