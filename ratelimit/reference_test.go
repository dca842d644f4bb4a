package ratelimit_test

import (
	"time"

	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// reference judges events by the definitions: it keeps every event, and
// evaluates all for each decision. It is slow and has no structure in common
// with the memory store.
type reference struct {
	set     *ratelimit.Set
	rules   []ratelimit.Rule
	records map[string]*refRecord // by rule and key
}

type refRecord struct {
	newest  int64
	judged  bool
	charged windowtest.Charges // what the limits recorded
	strikes windowtest.Charges // what the ban recorded; emptied when it starts
	until   int64
	banned  bool // until has been set
	bans    int
}

func newReference(set *ratelimit.Set, rules []ratelimit.Rule) *reference {
	return &reference{set: set, rules: rules, records: make(map[string]*refRecord)}
}

type refVerdict struct {
	allowed bool
	rules   map[int]*refRule
}

type refRule struct {
	record                            *refRecord
	refused, banned, started, skipped bool
	until                             int64
}

func (ref *reference) judge(t int64, e *match.Event, cost uint64) refVerdict {
	v := refVerdict{allowed: true, rules: make(map[int]*refRule)}
	if ref.set.Internal().Allowed(e) {
		return v
	}
	for i, r := range ref.rules {
		cond, _ := r.When.Compile()
		key, ok := r.Key.Append(nil, e)
		if !ok || !cond.Holds(e) {
			continue
		}
		id := r.Name + "\x00" + string(key)
		if ref.records[id] == nil {
			ref.records[id] = &refRecord{}
		}
		v.rules[i] = &refRule{record: ref.records[id]}
	}
	for _, rr := range v.rules {
		if rr.record.judged {
			t = max(t, rr.record.newest)
		}
	}
	for _, rr := range v.rules {
		rr.record.newest, rr.record.judged = t, true
	}
	anyBan := false
	for i, rr := range v.rules {
		if rr.record.banned && t < rr.record.until {
			rr.refused, rr.banned, rr.until = true, true, rr.record.until
			anyBan = anyBan || !ref.rules[i].Shadow
		}
	}
	for i, rr := range v.rules {
		if anyBan {
			rr.skipped = !rr.banned
		} else if !rr.banned {
			ref.judgeRule(&ref.rules[i], rr, t, cost)
		}
		if rr.refused && !ref.rules[i].Shadow {
			v.allowed = false
		}
	}
	for i, rr := range v.rules {
		r := &ref.rules[i]
		if anyBan || rr.banned || r.Shadow && !v.allowed {
			continue
		}
		if v.allowed && !rr.refused || r.CountRefused {
			rr.record.charged.Add(t, cost)
		}
	}
	return v
}

func (ref *reference) judgeRule(r *ratelimit.Rule, rr *refRule, t int64, cost uint64) {
	over := false
	for _, l := range r.Limits {
		if cost > 0 && rr.record.charged.In(t, int64(l.Span))+cost > l.N {
			over = true
		}
	}
	strike := r.Ban != nil && (r.Ban.Of == ratelimit.Hits && cost > 0 || over)
	rr.refused = over
	if !strike {
		return
	}
	rr.record.strikes.Add(t, 1)
	if rr.record.strikes.In(t, int64(r.Ban.Span)) <= r.Ban.After {
		return
	}
	remember := r.Ban.Remember
	if remember == 0 {
		remember = 24 * time.Hour
	}
	if rr.record.banned && t-rr.record.until > int64(remember) {
		rr.record.bans = 0
	}
	rr.record.until = t + int64(r.Ban.Duration(rr.record.bans))
	rr.record.bans++
	rr.record.banned = true
	rr.record.strikes = nil
	rr.refused, rr.banned, rr.started, rr.until = true, true, true, rr.record.until
}
