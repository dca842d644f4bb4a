package ratelimit

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
)

// scratch is the memory of one decision.
type scratch struct {
	request  request
	subjects []subject
	keys     []byte
	lacking  []int // rules whose condition holds, and of whose key the event lacks a field
	adjust   adjustment
	listed   bool            // the allow list contains what was collected
	exempt   *match.Prefixes // that of the limiter
}

// A query is a Query at a time.
type query struct {
	Query
	now int64
}

func (l *Limiter) decide(q *query) Decision {
	sc := l.scratch.Get().(*scratch)
	d := l.decideWith(sc, q, q.Ticket == nil)
	if q.Ticket != nil {
		q.Ticket.fill(q, &sc.request, &d)
	}
	l.scratch.Put(sc)
	return d
}

// decideWith decides with the memory of sc, and leaves the request there, with
// the subjects that were judged, unless fast says that only the decision matters.
func (l *Limiter) decideWith(sc *scratch, q *query, fast bool) (d Decision) {
	sc.exempt = l.exempt.Load()
	for {
		set := l.set.Load()
		begun, decided := sc.begin(set, q)
		if len(sc.lacking) > 0 && !q.Peek && q.Event.Part != match.Answer {
			l.countLacking(set, sc.lacking)
		}
		if decided {
			return begun
		}
		if fast && len(sc.subjects) == 1 && l.memory != nil && !q.Peek && !sc.request.Looks && !sc.request.Answer {
			s := &sc.subjects[0]
			key := unsafe.String(unsafe.SliceData(s.Key), len(s.Key)) // only read
			if l.memory.decideFast(&d, set, s.Outcome.Rule, nil, q.now, key, q.Cost, s.N) {
				return d
			}
		}
		r := sc.ask(set, q)
		if d, ok := l.finish(r, q.now, l.decideIn(r)); ok {
			return d
		}
	}
}

// begin collects what q is about. It reports whether that alone decides: there is no such
// key, or no rule matches.
func (sc *scratch) begin(set *Set, q *query) (d Decision, ok bool) {
	sc.request.Set, sc.request.Subjects, sc.request.Looks, sc.request.Answer = set, nil, false, false
	if err := sc.collect(set, q); err != nil {
		return errorDecision(err), true
	}
	return Decision{Allowed: true, Unmatched: !sc.listed}, len(sc.subjects) == 0
}

// errorDecision returns the decision about a key that was not judged because of
// err. It allows the event if there is no such rule, as for an event that no rule
// matches, and refuses values that are not a key.
func errorDecision(err error) Decision {
	_, gone := err.(*RuleError)
	return Decision{Allowed: gone, Unmatched: gone, Err: err}
}

// collect finds the rules of set that q is about, with their keys. Adjacent rules
// with the same key share its bytes, so a store recognizes them without comparing.
func (sc *scratch) collect(set *Set, q *query) error {
	if q.Event == nil {
		sc.lacking = sc.lacking[:0]
		return sc.collectKey(set, q)
	}
	sc.subjects, sc.keys, sc.lacking = sc.subjects[:0], sc.keys[:0], sc.lacking[:0]
	if sc.listed = set.Allowed(q.Event) || sc.exempt != nil && sc.exempt.Contains(q.Event.Get(match.Client)); sc.listed {
		return nil
	}
	last, conds := -1, set.conds[q.Event.Part]
	for i := range conds {
		if !conds[i].Holds(q.Event) {
			continue
		}
		if set.keys[i] == last {
			sc.add(i, sc.subjects[len(sc.subjects)-1].Key)
		} else if key, ok := sc.key(&set.rules[i].Key, q.Event); ok {
			last = set.keys[i]
			sc.add(i, key)
		} else {
			sc.lacking = append(sc.lacking, i)
			continue
		}
		if b := set.rules[i].Ban; b != nil && b.Of == Distinct {
			sc.subjects[len(sc.subjects)-1].Value, _ = sc.key(&set.distinct[i], q.Event)
		}
		if by := set.rules[i].LimitBy; by != nil {
			value, _ := sc.key(&set.by[i], q.Event)
			sc.subjects[len(sc.subjects)-1].N = set.limitOf(i, value)
		}
	}
	if q.Event.Part != match.Whole {
		sc.collectPart(set, q.Event.Part)
	}
	return nil
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

// collectKey is collect for the values of a key.
func (sc *scratch) collectKey(set *Set, q *query) (err error) {
	if err = sc.collectRule(set, q); err != nil {
		return err
	}
	i := sc.subjects[0].Outcome.Rule
	if sc.listed = set.allowsKey(i, sc.keys) || sc.exempts(&set.rules[i].Key, set.clients[i], q.Key); sc.listed {
		sc.subjects = sc.subjects[:0]
		return nil
	}
	if by := set.rules[i].LimitBy; by != nil || q.Limit > 0 {
		sc.subjects[0].N, err = set.limitOfKey(i, q, sc.keys)
	}
	return err
}

// exempts reports whether the client among the values of a key, if there is one, is exempt. The values are as they were
// given: a key has cut them to networks.
func (sc *scratch) exempts(k *match.Key, client int, values []string) bool {
	return sc.exempt != nil && client >= 0 && sc.exempt.Contains(keyvalue.Client(k.Fields()[client], bytesOf(values[client])))
}

// collectRule finds the rule of set that q names, and makes the key of its values.
func (sc *scratch) collectRule(set *Set, q *query) (err error) {
	sc.subjects, sc.keys = sc.subjects[:0], sc.keys[:0]
	i, ok := set.names[q.Rule]
	if !ok {
		return set.noRule(q.Rule)
	}
	if sc.keys, err = set.rules[i].Key.Join(sc.keys, q.Key...); err != nil {
		return &keyError{rule: set.rules[i].Name, err: err}
	}
	sc.add(i, sc.keys)
	return nil
}

// ask makes the request of what was collected.
func (sc *scratch) ask(set *Set, q *query) *request {
	r := &sc.request
	*r = request{Set: set, Now: q.now, Cost: q.Cost, Peek: q.Peek, Settled: q.Ticket != nil, Looks: r.Looks, Answer: r.Answer, Subjects: sc.subjects, Scratch: r.Scratch}
	return r
}

// decideIn has the store decide r.
func (l *Limiter) decideIn(r *request) error {
	if l.memory != nil {
		return l.memory.decide(r)
	}
	if l.store.DecideKnown(r) {
		return nil
	}
	l.decideBatch([]*request{r})
	return r.Err
}

// finish returns the decision about r, an event at now, which the store has decided, or could
// not because of err. It reports false if r has to be collected again under the rules that an Update is
// about to publish.
func (l *Limiter) finish(r *request, now int64, err error) (d Decision, ok bool) {
	if err == nil {
		l.note(r, now)
		l.count(r)
		return fold(r), true
	}
	if !errors.Is(err, store.ErrStale) {
		d, err = l.failOver(r, err)
	}
	if errors.Is(err, store.ErrStale) {
		runtime.Gosched()
		return d, false
	}
	return d, true
}
