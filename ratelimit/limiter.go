package ratelimit

import (
	"sync"
	"time"
	"unsafe"

	"github.com/lately-go/lately/match"
)

// A Limiter judges events under a [Set], with the counts in a [Store].
//
// Verbs come in pairs: Take judges now, TakeAt at a time that the caller has.
// Now is the wall clock as it stood when the Limiter was made plus the time
// that has passed since, so that setting the clock changes no decision; one
// Limiter is used with either verb, not with a mixture of live times and times
// from a log. A decision with the memory store does not allocate.
//
// A Limiter is safe for concurrent use. Its zero value is not usable; call New
// or NewLimiter.
type Limiter struct {
	set   *Set
	store Store
	start time.Time // with its monotonic reading

	scratch sync.Pool // *scratch

	local func() *Memory // decides for rules that say so while the store is away
}

// scratch is the memory of one decision.
type scratch struct {
	request  Request
	subjects []Subject
	keys     []byte
}

// New returns a Limiter of rules with a memory store.
func New(rules ...Rule) (*Limiter, error) {
	s, err := NewSet(SetConfig{}, rules...)
	if err != nil {
		return nil, err
	}
	m, err := NewMemory(s, MemoryConfig{})
	if err != nil {
		return nil, err
	}
	return NewLimiter(s, m), nil
}

// NewLimiter returns a Limiter of s's rules over store, which was made for s.
func NewLimiter(s *Set, store Store) *Limiter {
	return &Limiter{
		set:     s,
		store:   store,
		start:   time.Now(),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
		local: sync.OnceValue(func() *Memory {
			m, err := NewMemory(s, MemoryConfig{})
			if err != nil {
				panic(err) // the zero config is valid
			}
			return m
		}),
	}
}

// Set returns the rules that l judges under.
func (l *Limiter) Set() *Set { return l.set }

// Take judges e now, and counts it once. It is short for TakeAt(now, e, 1).
func (l *Limiter) Take(e *match.Event) Decision { return l.TakeAt(l.now(), e, 1) }

// TakeAt judges e at time t and charges the limits with cost. It does not read
// e.Time. Times are good from 1720 to 2220; what lies beyond is judged at the
// end of that range.
func (l *Limiter) TakeAt(t time.Time, e *match.Event, cost uint64) Decision {
	d, _ := l.judge(t, e, cost, nil)
	return d
}

// Judge is TakeAt with what each matching rule said, in the order of the rules,
// appended to dst. It is for reports.
func (l *Limiter) Judge(t time.Time, e *match.Event, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judge(t, e, cost, dst)
}

// TakeKey judges an event now that the caller has the key of, under all rules,
// whatever their keys and conditions. It is meant for a Set of rules on one
// key, and is short for TakeKeyAt(now, key, 1).
func (l *Limiter) TakeKey(key string) Decision { return l.TakeKeyAt(l.now(), key, 1) }

// TakeKeyAt is TakeKey at time t with a cost.
func (l *Limiter) TakeKeyAt(t time.Time, key string, cost uint64) Decision {
	d, _ := l.judgeKey(t, key, cost, nil)
	return d
}

// JudgeKey is TakeKeyAt with what each rule said, in the order of the rules,
// appended to dst. It is for reports.
func (l *Limiter) JudgeKey(t time.Time, key string, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judgeKey(t, key, cost, dst)
}

func (l *Limiter) now() time.Time { return l.start.Add(time.Since(l.start)) }

func (l *Limiter) judge(t time.Time, e *match.Event, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if l.set.Allowed(e) {
		return Decision{Allowed: true}, dst
	}
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	l.subjects(sc, e)
	return l.decide(sc, t, cost, dst)
}

func (l *Limiter) judgeKey(t time.Time, key string, cost uint64, dst []Outcome) (Decision, []Outcome) {
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	sc.subjects = sc.subjects[:0]
	bytes := unsafe.Slice(unsafe.StringData(key), len(key)) // stores only read keys
	for i := range l.set.rules {
		sc.subjects = append(sc.subjects, Subject{Key: bytes, Outcome: Outcome{Rule: i}})
	}
	return l.decide(sc, t, cost, dst)
}

// subjects collects the rules that match e, with their keys. Neighbours on one
// key share its bytes, which lets a store see that without comparing.
func (l *Limiter) subjects(sc *scratch, e *match.Event) {
	sc.subjects, sc.keys = sc.subjects[:0], sc.keys[:0]
	var last *match.Key
	for i := range l.set.rules {
		r := &l.set.rules[i]
		if !l.set.conds[i].Holds(e) {
			continue
		}
		if n := len(sc.subjects); n > 0 && last.Equal(r.Key) {
			sc.subjects = append(sc.subjects, Subject{Key: sc.subjects[n-1].Key, Outcome: Outcome{Rule: i}})
			continue
		}
		at := len(sc.keys)
		var ok bool
		if sc.keys, ok = r.Key.Append(sc.keys, e); !ok {
			continue
		}
		last = &r.Key
		sc.subjects = append(sc.subjects, Subject{Key: sc.keys[at:len(sc.keys):len(sc.keys)], Outcome: Outcome{Rule: i}})
	}
}

// decide asks the store about sc.subjects. Their outcomes are appended to dst
// unless it is nil.
func (l *Limiter) decide(sc *scratch, t time.Time, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if len(sc.subjects) == 0 {
		return Decision{Allowed: true}, dst
	}
	sc.request = Request{Now: clampTime(t), Cost: cost, Subjects: sc.subjects}
	var d Decision
	if err := l.store.Decide(&sc.request); err != nil {
		d = l.failOver(&sc.request, err)
	} else {
		d = fold(l.set, sc.request.Subjects)
	}
	if dst != nil {
		for i := range sc.request.Subjects {
			dst = append(dst, sc.request.Subjects[i].Outcome)
		}
	}
	return d, dst
}

// failOver decides by the rules' fail policies after the store could not. It
// leaves in r the subjects that were judged here.
func (l *Limiter) failOver(r *Request, err error) Decision {
	local := r.Subjects[:0]
	for _, s := range r.Subjects {
		rule := &l.set.rules[s.Outcome.Rule]
		switch {
		case rule.OnStoreFailure == FailLocal:
			local = append(local, s)
		case rule.OnStoreFailure == FailClosed && !rule.Shadow:
			r.Subjects = nil
			return Decision{Rule: rule.Name, Err: err}
		}
	}
	r.Subjects = local
	if localErr := l.local().Decide(r); localErr != nil {
		r.Subjects = nil
		return Decision{Err: localErr} // a key that no store takes
	}
	d := fold(l.set, local)
	d.Err = err
	return d
}
