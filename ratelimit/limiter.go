package ratelimit

import (
	"sync"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/shard"
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
	set    *Set
	store  Store
	memory *Memory   // the store, if it is one
	start  time.Time // with its monotonic reading
	base   int64     // start as a time of events

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
	memory, _ := store.(*Memory)
	start := time.Now()
	return &Limiter{
		set:     s,
		store:   store,
		memory:  memory,
		start:   start,
		base:    shard.Nanos(start, MaxSpan),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
		local: sync.OnceValue(func() *Memory {
			if memory != nil {
				return memory // it refused a key; the other rules' counts are there
			}
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
func (l *Limiter) Take(e *match.Event) Decision {
	d, _ := l.judge(l.now(), e, 1, nil)
	return d
}

// TakeAt judges e at time t and charges the limits with cost. It does not read
// e.Time. A cost of 0 only looks: no limit refuses it, and it is no hit for a
// ban, but an event of its time otherwise. Times are good from 1720 to 2220;
// what lies beyond is judged at the end of that range.
func (l *Limiter) TakeAt(t time.Time, e *match.Event, cost uint64) Decision {
	d, _ := l.judge(shard.Nanos(t, MaxSpan), e, cost, nil)
	return d
}

// Judge is TakeAt with what each matching rule said, in the order of the rules,
// appended to dst. It is for reports.
func (l *Limiter) Judge(t time.Time, e *match.Event, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judge(shard.Nanos(t, MaxSpan), e, cost, dst)
}

// TakeKey judges an event now that the caller has the key of, under all rules,
// whatever their keys and conditions. It is meant for a Set of rules on one
// key, and is short for TakeKeyAt(now, key, 1).
func (l *Limiter) TakeKey(key string) Decision { return l.takeKey(l.now(), key, 1) }

// TakeKeyAt is TakeKey at time t with a cost.
func (l *Limiter) TakeKeyAt(t time.Time, key string, cost uint64) Decision {
	return l.takeKey(shard.Nanos(t, MaxSpan), key, cost)
}

func (l *Limiter) takeKey(now int64, key string, cost uint64) Decision {
	if l.memory != nil && l.set.Len() == 1 && len(key) <= shard.MaxKey {
		return l.takeOne(now, key, cost)
	}
	d, _ := l.judgeKey(now, key, cost, nil)
	return d
}

// JudgeKey is TakeKeyAt with what each rule said, in the order of the rules,
// appended to dst. It is for reports.
func (l *Limiter) JudgeKey(t time.Time, key string, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judgeKey(shard.Nanos(t, MaxSpan), key, cost, dst)
}

func (l *Limiter) now() int64 { return l.base + int64(time.Since(l.start)) }

func (l *Limiter) judge(now int64, e *match.Event, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if l.set.Allowed(e) {
		return Decision{Allowed: true}, dst
	}
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	l.subjects(sc, e)
	return l.decide(sc, now, cost, dst)
}

func (l *Limiter) judgeKey(now int64, key string, cost uint64, dst []Outcome) (Decision, []Outcome) {
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	sc.subjects = sc.subjects[:0]
	bytes := unsafe.Slice(unsafe.StringData(key), len(key)) // stores only read keys
	for i := range l.set.rules {
		sc.subjects = append(sc.subjects, Subject{Key: bytes, Outcome: Outcome{Rule: i}})
	}
	return l.decide(sc, now, cost, dst)
}

// takeOne is takeKey under the only rule of a Set, in memory, for a key that
// is not too long: the most common case, which needs no scratch memory.
func (l *Limiter) takeOne(now int64, key string, cost uint64) Decision {
	subjects := [1]Subject{{Key: unsafe.Slice(unsafe.StringData(key), len(key))}} // only read
	r := Request{Now: now, Cost: cost, Subjects: subjects[:]}
	l.memory.decideOne(&r)
	return fold(l.set, r.Subjects)
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
func (l *Limiter) decide(sc *scratch, now int64, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if len(sc.subjects) == 0 {
		return Decision{Allowed: true}, dst
	}
	sc.request = Request{Now: now, Cost: cost, Subjects: sc.subjects}
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
		case rule.Shadow && len(s.Key) > shard.MaxKey:
			// Its key is what no store takes, and it would refuse nothing.
		case rule.OnStoreFailure == FailLocal:
			local = append(local, s)
		case rule.OnStoreFailure == FailClosed && !rule.Shadow:
			r.Subjects = nil
			return Decision{Rule: rule.Name, Err: err}
		}
	}
	r.Subjects = local
	if len(local) == 0 {
		return Decision{Allowed: true, Err: err}
	}
	if localErr := l.local().Decide(r); localErr != nil {
		r.Subjects = nil
		return Decision{Err: localErr} // a key that no store takes
	}
	d := fold(l.set, local)
	d.Err = err
	return d
}
