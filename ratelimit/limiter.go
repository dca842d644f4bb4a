package ratelimit

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/match"
)

// A Limiter judges events under a [Set], with the counts in a [Store].
//
// Verbs come in pairs: Take judges now, TakeAt at a time that the caller has.
// Now is the wall clock as it stood when the Limiter was made plus the time
// that has passed since, so that setting the clock changes no decision; one
// Limiter is used with either verb, not with a mixture of live times and times
// from a log. Verbs with Key are for callers that have the key and no event: they
// judge under all rules, whatever their keys and conditions, and are meant for a
// Set of rules on one key. Verbs with Rule judge a key under the one rule of that
// name. A rule does not count a key whose client is on the allow list. A decision with the memory store does not allocate, but for a new key and one
// of more than a kibibyte.
//
// A Limiter is safe for concurrent use. Its zero value is not usable; call New
// or NewLimiter.
type Limiter struct {
	set    atomic.Pointer[Set]
	store  Store
	memory *Memory   // the store, if it is one
	start  time.Time // with its monotonic reading
	base   int64     // start as a time of events

	scratch sync.Pool // *scratch

	// mu keeps updates and the making of local apart.
	mu sync.Mutex
	// local decides for rules that say so while the store is away.
	local     atomic.Pointer[Memory]
	fallbacks atomic.Uint64
}

// scratch is the memory of one decision.
type scratch struct {
	request  Request
	subjects []Subject
	keys     []byte
	refund   Refund
	listed   bool // the allow list admits what was collected
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

// NewLimiter returns a Limiter of s's rules over store, which was made for s and
// which nobody else updates. It panics if store is a Memory that was made for
// another Set, even one of the same rules: it would never decide.
func NewLimiter(s *Set, store Store) *Limiter {
	memory, _ := store.(*Memory)
	if memory != nil && memory.rules.Load().set != s {
		panic("ratelimit: NewLimiter has a Memory that was made for another Set; NewMemory and NewLimiter take the same *Set")
	}
	start := time.Now()
	l := &Limiter{
		store:   store,
		memory:  memory,
		start:   start,
		base:    keytable.Nanos(start, MaxSpan),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	l.set.Store(s)
	// A key that a memory store refuses is too long for any; the other rules'
	// counts are there.
	l.local.Store(memory)
	return l
}

// Set returns the rules that l judges under now.
func (l *Limiter) Set() *Set { return l.set.Load() }

// Now returns the time at which live verbs judge at this moment.
func (l *Limiter) Now() time.Time { return l.start.Add(time.Since(l.start)) }

// Take judges e now, and counts it once. It is short for TakeAt(now, e, 1).
func (l *Limiter) Take(e *match.Event) Decision {
	d, _ := l.judge(&ask{now: l.now(), event: e, cost: 1}, nil)
	return d
}

// TakeAt judges e at time t and charges the limits with cost. It does not read
// e.Time. A cost of 0 moves the windows on and counts nothing: no limit refuses
// it, and it is no hit for a ban. Times are good from 1720 to 2220; what lies
// beyond is judged at the end of that range.
func (l *Limiter) TakeAt(t time.Time, e *match.Event, cost uint64) Decision {
	d, _ := l.judge(&ask{now: nanos(t), event: e, cost: cost}, nil)
	return d
}

// TakeKey judges an event now of which the caller has the key, and counts it
// once. It is short for TakeKeyAt(now, key, 1).
func (l *Limiter) TakeKey(key string) (d Decision) {
	set := l.set.Load()
	if l.memory == nil || len(set.rules) != 1 || set.allowsKey(0, key) || !l.memory.take(&d, set, 0, l, 0, key, 1) {
		d, _ = l.judge(&ask{now: l.now(), key: key, cost: 1}, nil)
	}
	return d
}

// TakeKeyAt is TakeKey at time t with a cost.
func (l *Limiter) TakeKeyAt(t time.Time, key string, cost uint64) (d Decision) {
	set := l.set.Load()
	if l.memory == nil || len(set.rules) != 1 || set.allowsKey(0, key) || !l.memory.take(&d, set, 0, nil, nanos(t), key, cost) {
		d, _ = l.judge(&ask{now: nanos(t), key: key, cost: cost}, nil)
	}
	return d
}

// Peek says what Take would, and changes nothing: no count, no ban, no time.
//
// RetryAfter and ResetAfter are those of a client that has not tried. Where a
// refused event counts (Rule.CountRefused, and a Ban after Hits) Take may say
// more, for it has counted the event that it refused.
func (l *Limiter) Peek(e *match.Event) Decision {
	d, _ := l.judge(&ask{now: l.now(), event: e, cost: 1, look: true}, nil)
	return d
}

// PeekAt says what TakeAt would, and changes nothing. t may lie in the future.
func (l *Limiter) PeekAt(t time.Time, e *match.Event, cost uint64) Decision {
	d, _ := l.judge(&ask{now: nanos(t), event: e, cost: cost, look: true}, nil)
	return d
}

// PeekKey says what TakeKey would, and changes nothing.
func (l *Limiter) PeekKey(key string) Decision {
	d, _ := l.judge(&ask{now: l.now(), key: key, cost: 1, look: true}, nil)
	return d
}

// PeekKeyAt says what TakeKeyAt would, and changes nothing.
func (l *Limiter) PeekKeyAt(t time.Time, key string, cost uint64) Decision {
	d, _ := l.judge(&ask{now: nanos(t), key: key, cost: cost, look: true}, nil)
	return d
}

// Judge is TakeAt with what each matching rule said, in the order of the rules,
// appended to dst, and of which Set the rules are. It is for reports and headers;
// live, t is [Limiter.Now].
func (l *Limiter) Judge(t time.Time, e *match.Event, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judge(&ask{now: nanos(t), event: e, cost: cost}, dst)
}

// JudgeKey is TakeKeyAt with what each rule said, in the order of the rules,
// appended to dst. It is for reports.
func (l *Limiter) JudgeKey(t time.Time, key string, cost uint64, dst []Outcome) (Decision, []Outcome) {
	if dst == nil {
		dst = []Outcome{}
	}
	return l.judge(&ask{now: nanos(t), key: key, cost: cost}, dst)
}

// Reset forgets what the rules that match e have counted of its keys: limits and
// what counts toward a ban. Bans that hold go on; [BanList.Remove] ends one. What
// was reserved before is not given back again by a later settlement. A key that
// is counted in a sketch for want of room stays as it is.
func (l *Limiter) Reset(e *match.Event) error { return l.reset(&ask{event: e}) }

// ResetKey is Reset under all rules for a key that the caller has.
func (l *Limiter) ResetKey(key string) error { return l.reset(&ask{key: key}) }

func (l *Limiter) reset(a *ask) error {
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	for {
		set := l.set.Load()
		a.set = set
		sc.collect(set, a)
		if err := l.store.Reset(set, sc.subjects); !errors.Is(err, ErrStale) {
			return err
		}
		runtime.Gosched()
	}
}

func (l *Limiter) now() int64 { return l.base + int64(time.Since(l.start)) }

func nanos(t time.Time) int64 { return keytable.Nanos(t, MaxSpan) }

// An ask is what a caller wants to know: about an event, or about a key under
// all rules, or under one.
type ask struct {
	now   int64
	event *match.Event // nil: key
	key   string
	rule  string // of a key, the name of the one rule; "" is all
	cost  uint64
	look  bool

	set *Set // that was asked, in the end
}

// viewed returns the bytes of key, which nobody writes to.
func viewed(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

func (l *Limiter) judge(a *ask, dst []Outcome) (Decision, []Outcome) {
	sc := l.scratch.Get().(*scratch)
	d := l.judgeIn(sc, a, dst == nil)
	if dst != nil {
		dst = sc.request.appendOutcomes(dst)
	}
	l.scratch.Put(sc)
	return d, dst
}

// judgeIn judges with sc for memory, and leaves the request there, with the
// subjects that were judged, unless short says that only the decision matters.
func (l *Limiter) judgeIn(sc *scratch, a *ask, short bool) (d Decision) {
	for {
		set := l.set.Load()
		a.set = set
		sc.collect(set, a)
		if short && len(sc.subjects) == 1 && l.memory != nil && !a.look {
			s := &sc.subjects[0]
			key := unsafe.String(unsafe.SliceData(s.Key), len(s.Key)) // only read
			if l.memory.take(&d, set, s.Outcome.Rule, nil, a.now, key, a.cost) {
				return d
			}
		}
		sc.request = Request{Set: set, Now: a.now, Cost: a.cost, Look: a.look, Subjects: sc.subjects, spare: sc.request.spare}
		if len(sc.subjects) == 0 {
			return Decision{Allowed: true, Unmatched: !sc.listed}
		}
		err := l.store.Decide(&sc.request)
		switch {
		case err == nil:
			return fold(set, sc.subjects, a.cost)
		case errors.Is(err, ErrStale):
			runtime.Gosched() // an Update is about to say which Set holds
			continue
		}
		if d, err := l.failOver(&sc.request, err); !errors.Is(err, ErrStale) {
			return d
		}
	}
}

// collect finds the rules of set that a is about, with their keys. Neighbours on
// one key share its bytes, which lets a store see that without comparing.
func (sc *scratch) collect(set *Set, a *ask) {
	sc.subjects, sc.keys, sc.listed = sc.subjects[:0], sc.keys[:0], false
	if a.rule != "" {
		i, ok := set.names[a.rule]
		if sc.listed = ok && set.allowsKey(i, a.key); ok && !sc.listed {
			sc.subjects = append(sc.subjects, Subject{Key: viewed(a.key), Outcome: Outcome{Rule: i}})
		}
		return
	}
	if a.event == nil {
		key := viewed(a.key)
		for i := range set.rules {
			if !set.allowsKey(i, a.key) {
				sc.subjects = append(sc.subjects, Subject{Key: key, Outcome: Outcome{Rule: i}})
			}
		}
		return
	}
	if sc.listed = set.Allowed(a.event); sc.listed {
		return
	}
	var last *match.Key
	for i := range set.rules {
		r := &set.rules[i]
		if !set.conds[i].Holds(a.event) {
			continue
		}
		if n := len(sc.subjects); n > 0 && last.Equal(r.Key) {
			sc.subjects = append(sc.subjects, Subject{Key: sc.subjects[n-1].Key, Outcome: Outcome{Rule: i}})
			continue
		}
		at := len(sc.keys)
		var ok bool
		if sc.keys, ok = r.Key.Append(sc.keys, a.event); !ok {
			continue
		}
		last = &r.Key
		sc.subjects = append(sc.subjects, Subject{Key: sc.keys[at:len(sc.keys):len(sc.keys)], Outcome: Outcome{Rule: i}})
	}
}
