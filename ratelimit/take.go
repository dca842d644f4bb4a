package ratelimit

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
)

// scratch is the memory of one decision.
type scratch struct {
	request  request
	subjects []subject
	keys     []byte
	lacking  []lack
	adjust   adjustment
	listed   bool // the allow list contains what was collected
	rule     int  // of the key that was collected last
}

// decide makes d, which is zero, the decision about q at that time.
func (l *Limiter) decide(d *Decision, q *batch.Query, now int64) {
	sc := l.scratch.Get().(*scratch)
	l.decideWith(sc, d, q, now, true)
	l.scratch.Put(sc)
}

// decideWith is decide with the memory of sc. It leaves the request there, with the subjects
// that were judged, unless fast says that only the decision and the ticket matter.
func (l *Limiter) decideWith(sc *scratch, d *Decision, q *batch.Query, now int64, fast bool) {
	for !l.attempt(sc, d, q, now, fast) {
	}
	l.complete(sc, d, q)
}

// attempt makes d the decision under the rules that have the key of the event. It reports
// false if an Update is about to publish other rules.
func (l *Limiter) attempt(sc *scratch, d *Decision, q *batch.Query, now int64, fast bool) bool {
	set := l.set.Load()
	if l.begin(sc, d, set, q, now) {
		return true
	}
	if fast && len(sc.subjects) == 1 && l.memory != nil && !q.Peek && !sc.request.Looks && !sc.request.Answer && !sc.request.Refused {
		s := &sc.subjects[0]
		key := unsafe.String(unsafe.SliceData(s.Key), len(s.Key)) // only read
		var charged *request
		if q.Ticket != nil {
			charged = &sc.request
			charged.Subjects = sc.subjects
		}
		if l.memory.decideFast(d, set, s.Outcome.Rule, nil, now, key, q.Cost, s.N, charged) {
			return true
		}
	}
	r := sc.makeRequest(set, q, now)
	return l.finish(d, r, now, l.askStore(r))
}

// complete adds to d the rules of which the event lacks a field, and makes the ticket of q, if
// there is one.
func (l *Limiter) complete(sc *scratch, d *Decision, q *batch.Query) {
	if len(sc.lacking) > 0 {
		l.lacked(sc, d, q)
	}
	if q.Ticket != nil {
		fillTicket(q.Ticket, q, &sc.request, d)
	}
}

// begin collects what q is about. It reports whether that alone decides, and makes d the decision then: there is no such
// key, or no rule matches.
func (l *Limiter) begin(sc *scratch, d *Decision, set *Set, q *batch.Query, now int64) bool {
	r := &sc.request
	r.Set, r.Subjects, r.Now, r.Looks, r.Answer, r.Refused = set, nil, now, false, false, false
	sc.lacking = sc.lacking[:0]
	if q.Event == nil {
		if err := sc.collectKey(set, q, l.exempt.Load()); err != nil {
			*d = errorDecision(err)
			return true
		}
	} else {
		if sc.collectEvent(set, q.Event, l.exempt.Load()); q.Partial && !sc.listed {
			sc.lacking = set.lackedBy(sc.lacking, q.Event)
		}
	}
	if len(sc.subjects) > 0 {
		return false
	}
	d.Allowed, d.Unmatched = true, !sc.listed
	return true
}

// errorDecision returns the decision about a key that was not judged because of
// err. It allows the event if there is no such rule, as for an event that no rule
// matches, and refuses values that are not a key.
func errorDecision(err error) Decision {
	_, gone := err.(*RuleError)
	return Decision{Allowed: gone, Unmatched: gone, Err: err}
}

// collectEvent finds the rules of set that match e, with their keys. Adjacent rules
// with the same key share its bytes, so a store recognizes them without comparing. Clients that are exempt
// are allowed as if they were listed.
func (sc *scratch) collectEvent(set *Set, e *match.Event, exempt *address.Set) {
	sc.subjects, sc.keys = sc.subjects[:0], sc.keys[:0]
	if sc.listed = set.allowed(e) || exempt != nil && exempt.Contains(e.Get(match.Client)); sc.listed {
		return
	}
	last, conds := -1, set.conds[e.Part]
	for i := range conds {
		if !conds[i].Holds(e) {
			continue
		}
		if len(set.required[i]) > 0 {
			if missing := set.missing(i, e); missing != "" {
				sc.lacks(set, i, e, missing)
				continue
			}
		}
		if set.keys[i] == last {
			sc.add(i, sc.subjects[len(sc.subjects)-1].Key)
		} else if key, ok := sc.key(&set.rules[i].Key, e); ok {
			last = set.keys[i]
			sc.add(i, key)
		} else {
			sc.lacks(set, i, e, "")
			continue
		}
		if set.reads[i] {
			sc.read(set, i, e)
		}
	}
	if e.Part != match.Whole {
		sc.collectPart(set, e.Part)
	}
}

// read reads what the i-th rule takes from e besides its key: a value that its ban counts, and its limit.
func (sc *scratch) read(set *Set, i int, e *match.Event) {
	s := &sc.subjects[len(sc.subjects)-1]
	if b := set.rules[i].Ban; b != nil && b.Of == Distinct {
		s.Value, _ = sc.key(&set.distinct[i], e)
	}
	if by := set.rules[i].LimitBy; by != nil {
		value, _ := sc.key(&set.by[i], e)
		s.N = set.limitOf(i, value)
	}
}

// collectPart has the rules that count answers look at a request, or leaves them alone with an answer.
func (sc *scratch) collectPart(set *Set, part match.Part) {
	if sc.request.Answer = part == match.Answer; sc.request.Answer {
		sc.subjects = slices.DeleteFunc(sc.subjects, func(s subject) bool { return !set.answers[s.Outcome.Rule] })
		return
	}
	for i := range sc.subjects {
		s := &sc.subjects[i]
		s.Look = set.answers[s.Outcome.Rule]
		sc.request.Looks = sc.request.Looks || s.Look
	}
}

// key returns the key of an event.
func (sc *scratch) key(k *match.Key, e *match.Event) (key []byte, ok bool) {
	at := len(sc.keys)
	sc.keys, ok = k.Append(sc.keys, e)
	return sc.keys[at:len(sc.keys):len(sc.keys)], ok
}

// add adds a subject: a rule and the key. It leaves in place what an earlier outcome has
// there, as the store fills in all of it.
func (sc *scratch) add(rule int, key []byte) {
	n := len(sc.subjects)
	sc.subjects = slices.Grow(sc.subjects, 1)[:n+1]
	s := &sc.subjects[n]
	s.Key, s.N, s.Value, s.Look, s.Outcome.Rule = key, 0, nil, false, rule
}

// collectKey finds the rule of set that q names, with its key. Clients that are exempt are allowed as if they were
// listed.
func (sc *scratch) collectKey(set *Set, q *batch.Query, exempt *address.Set) (err error) {
	if err = sc.collectRule(set, q.Rule, q.Key); err != nil {
		return err
	}
	i := sc.rule
	r := set.rules[i]
	if client := set.clients[i]; client >= 0 {
		if sc.listed = set.allowsKey(i, sc.keys) || exempt != nil && exempts(exempt, set.fields[i], q.Key[client]); sc.listed {
			sc.subjects = sc.subjects[:0]
			return nil
		}
	}
	if q.Limit > 0 || r.LimitBy != nil {
		sc.subjects[0].N, err = set.limitOfKey(i, q, sc.keys)
	}
	return err
}

// collectRule finds the rule of set of that name, and makes the key of its values.
func (sc *scratch) collectRule(set *Set, rule string, values []string) (err error) {
	sc.subjects, sc.keys, sc.listed = sc.subjects[:0], sc.keys[:0], false
	i := sc.rule
	if i >= len(set.rules) || set.rules[i].Name != rule { // it is seldom another one than before
		var ok bool
		if i, ok = set.names[rule]; !ok {
			return set.noRule(rule)
		}
		sc.rule = i
	}
	if sc.keys, err = set.rules[i].Key.Join(sc.keys, values...); err != nil {
		return &keyError{rule: set.rules[i].Name, err: err}
	}
	sc.add(i, sc.keys)
	return nil
}

// exempts reports whether the value of that field of a key is an exempt client. The value is as it was
// given: the key has cut it to a network.
func exempts(exempt *address.Set, field, value string) bool {
	return exempt.Contains(keyvalue.Client(field, bytesOf(value)))
}

// makeRequest makes the request of what was collected.
func (sc *scratch) makeRequest(set *Set, q *batch.Query, now int64) *request {
	r := &sc.request
	*r = request{Set: set, Now: now, Cost: q.Cost, Peek: q.Peek, Settled: q.Ticket != nil, Looks: r.Looks, Answer: r.Answer, Refused: r.Refused, Subjects: sc.subjects, Scratch: r.Scratch}
	return r
}

// askStore has the store decide r.
func (l *Limiter) askStore(r *request) error {
	if l.memory != nil {
		return l.memory.decide(r)
	}
	if l.store.DecideKnown(r) {
		return nil
	}
	l.decideBatch([]*request{r})
	return r.Err
}

// finish makes d the decision about r, an event at now, which the store has decided, or could
// not because of err. It reports false if r has to be collected again under the rules that an Update is
// about to publish.
func (l *Limiter) finish(d *Decision, r *request, now int64, err error) bool {
	if err == nil {
		l.note(r, now)
		l.count(r)
		*d = fold(r)
		return true
	}
	if !errors.Is(err, store.ErrStale) {
		*d, err = l.failOver(r, err)
	}
	if errors.Is(err, store.ErrStale) {
		*d = Decision{}
		runtime.Gosched()
		return false
	}
	return true
}
