package ratelimit

import (
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/counting/ring"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// A lack is a rule of which an event that matches it lacks a field of the key.
type lack struct {
	rule    int
	missing string // the field that refuses it, as in Decision; empty if the rule does not judge it
}

// A requirement is a field of a rule's key without which an event is refused.
type requirement struct {
	name   string   // in the key
	fields []string // its alternatives, of which an event must have one
}

// requirements returns the fields of k that have an alternative which is declared with Refuse.
func requirements(k *match.Key, declared []match.Source) (all []requirement) {
	for _, name := range k.Fields() {
		fields := strings.Split(name, keyvalue.Separator)
		if slices.ContainsFunc(declared, func(s match.Source) bool { return s.Refuse && slices.Contains(fields, s.Field) }) {
			all = append(all, requirement{name, fields})
		}
	}
	return all
}

// missing returns which field refuses e under the i-th rule, or "". intake.Missing is no value: events that were kept have it if
// rules shared the field then.
func (s *Set) missing(i int, e *match.Event) string {
	for _, r := range s.required[i] {
		if !slices.ContainsFunc(r.fields, func(name string) bool {
			v := e.GetNamed(name)
			return len(v) > 0 && string(v) != intake.Missing
		}) {
			return r.name
		}
	}
	return ""
}

// lacks notes that e lacks a field of the key of the i-th rule, whose condition holds; missing is the field that refuses it, or "".
func (sc *scratch) lacks(set *Set, i int, e *match.Event, missing string) {
	if e.Part == match.Answer {
		return // the request was judged
	}
	sc.lacking = append(sc.lacking, lack{i, missing})
	sc.request.Refused = sc.request.Refused || missing != "" && !set.rules[i].Shadow
}

// lacked makes d, which the rules that have the key of the event have decided, the decision under all rules, and counts
// those of which the event lacks a field.
func (l *Limiter) lacked(sc *scratch, d *Decision, q *batch.Query) {
	set := sc.request.Set
	for _, x := range sc.lacking {
		if !q.Peek {
			l.countLacking(set, x)
		}
		if x.missing == "" {
			continue
		}
		d.Unmatched = false
		if rule := set.rules[x.rule]; !rule.Shadow && d.Missing == "" && d.BannedUntil.IsZero() {
			*d = Decision{Rule: rule.Name, Missing: x.missing, Err: d.Err}
		}
	}
	if sc.request.Refused {
		d.RetryAfter = Never // also of who is banned
	}
}

// appendLacking inserts the outcomes of rules that refuse the event because it lacks a field into those from
// first on, in the order of the rules.
func (sc *scratch) appendLacking(dst []Outcome, first int) []Outcome {
	for _, x := range sc.lacking {
		if x.missing == "" {
			continue
		}
		i := first
		for i < len(dst) && dst[i].Rule < x.rule {
			i++
		}
		dst = slices.Insert(dst, i, Outcome{Rule: x.rule, Set: sc.request.Set, Refused: true, Missing: x.missing, RetryAfter: Never})
	}
	return dst
}

// countLacking counts an event that lacks a field.
func (l *Limiter) countLacking(set *Set, x lack) {
	c := l.decisionsOf(set, x.rule)
	if c == nil {
		return
	}
	lacking := &c.lacking[ring.Stripe(stripeBits)]
	if lacking.all.Add(1); x.missing == "" {
		return
	}
	if lacking.refused.Add(1); set.rules[x.rule].Shadow {
		c.stripe().shadow.Add(1)
	} else {
		c.stripe().decided(false, false)
	}
}

// decisionsOf returns the counts of the i-th rule of set, or nil if an Update has replaced the rules.
func (l *Limiter) decisionsOf(set *Set, i int) *decisionCounts {
	if l.memory != nil {
		if all := l.memory.rules.Load().rules; i < len(all) && all[i].Name == set.rules[i].Name {
			return all[i].decisions
		}
	} else if all := *l.rules.Load(); i < len(all) && all[i].name == set.rules[i].Name {
		return all[i].decisions
	}
	return nil
}
