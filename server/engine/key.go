package engine

import (
	"slices"
	"time"

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

// A KeyWindow is what one window of a counter holds of a key.
type KeyWindow struct {
	Counter string
	Span    time.Duration
	Lo, Hi  uint64
	Slots   []Slot
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
	r := &KeyReport{Fields: fields, Key: key}
	now, l := e.now(), e.limiter.Load()
	for _, c := range e.book.Load().counters {
		if !slices.Equal(c.Key.Fields(), fields) {
			continue
		}
		k, err := c.Key.Join(nil, key...)
		if err != nil {
			return nil, &Error{BadArg, err.Error()}
		}
		r.Key = values(c.Key, string(k))
		reading := c.table.ReadAt(now, string(k))
		for _, span := range c.Spans {
			w := KeyWindow{Counter: c.Name, Span: span}
			w.Lo, w.Hi, _ = reading.BoundsLast(span)
			for start, n := range reading.Slots(span) {
				w.Slots = append(w.Slots, Slot{start, n})
			}
			r.Counters = append(r.Counters, w)
		}
	}
	set := l.Set()
	for i := range set.Len() {
		rule := set.Rule(i)
		if !slices.Equal(rule.Key.Fields(), fields) {
			continue
		}
		k, err := rule.Key.Join(nil, key...)
		if err != nil {
			return nil, &Error{BadArg, err.Error()}
		}
		r.Key = values(rule.Key, string(k))
		d, err := l.PeekRule(rule.Name, string(k))
		if err != nil {
			continue // the rule has gone meanwhile
		}
		r.Rules = append(r.Rules, KeyDecision{rule.Name, d})
	}
	for ban, err := range l.Bans() {
		if err != nil {
			return nil, &Error{Failed, err.Error()}
		}
		if i := slices.IndexFunc(r.Rules, func(d KeyDecision) bool { return d.Rule == ban.Rule }); i >= 0 && slices.Equal(ban.Key, r.Key) {
			r.Bans = append(r.Bans, ban)
		}
	}
	return r, nil
}
