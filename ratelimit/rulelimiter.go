package ratelimit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
)

// A RuleLimiter judges keys under one rule of a [Limiter], for callers that have
// the values of a key and no event. No other rule counts the key, and the rule's
// conditions are not considered.
//
//	logins, err := limiter.Rule("login")
//	...
//	if d := logins.Take("192.0.2.7", "ada"); !d.Allowed { ... }
//
// A key is given by its values in the order of the rule's [match.Key.Fields]; a
// client is folded and a path cleaned as in an event. A key whose client is on the
// allow list is allowed and not counted.
//
// A RuleLimiter stays valid when [Limiter.Update] changes the rules: it uses the
// current rule of its name. While there is no such rule, decisions are Allowed and
// Unmatched, as for an event that no rule matches, and Decision.Err is a
// [*RuleError]; the other methods return that error. If the values are not a key
// of the rule, because one is empty or their number is wrong, the decision refuses
// and Err says why.
//
// Its methods do not allocate, except Reserve, Wait and where those of Limiter do. A
// RuleLimiter is safe for concurrent use.
type RuleLimiter struct {
	limiter   *Limiter
	name      string
	at        atomic.Pointer[ruleAt]
	decisions *decisionCounts // with a shared store; that of memory has its own
}

// A ruleAt is where a RuleLimiter's rule is in a Set.
type ruleAt struct {
	set    *Set
	i      int    // of the rule, or -1
	raw    bool   // its keys are their only value, as it is, and N is that of the rule
	atMost uint64 // if its keys are their only value, the largest N that comes with them; 0 if none does
}

// Rule returns a handle that judges keys under the named rule. The error is a [*RuleError] if
// there is no such rule. The cost is one map lookup, without allocation.
func (l *Limiter) Rule(name string) (*RuleLimiter, error) {
	set := l.set.Load()
	i, ok := set.names[name]
	if !ok {
		return nil, set.noRule(name)
	}
	if all := *l.rules.Load(); i < len(all) && all[i].name == name {
		return &all[i], nil
	}
	return &RuleLimiter{limiter: l, name: set.rules[i].Name}, nil // an Update is under way
}

// use makes s the rules of l.
func (l *Limiter) use(s *Set) {
	all := make([]RuleLimiter, len(s.rules))
	for i := range all {
		all[i].limiter, all[i].name = l, s.rules[i].Name
		if l.memory == nil {
			all[i].decisions = l.decisionsFor(s.rules[i])
		}
	}
	l.rules.Store(&all)
	l.set.Store(s)
}

// decisionsFor returns what counts the decisions of r: as before, if it is a rule of l with
// that key.
func (l *Limiter) decisionsFor(r *Rule) *decisionCounts {
	if set := l.set.Load(); set != nil {
		if i, ok := set.names[r.Name]; ok && keyvalue.Equal(set.rules[i].Key, r.Key) {
			return (*l.rules.Load())[i].decisions
		}
	}
	return new(decisionCounts)
}

// Take judges a key now and counts it once. It is short for TakeAt with the current
// time and a cost of 1.
func (r *RuleLimiter) Take(key ...string) (d Decision) {
	l := r.limiter
	if at := r.current(); at.raw && len(key) == 1 && key[0] != "" && l.memory.decideFast(&d, at.set, at.i, l, 0, key[0], 1, 0, nil) {
		return d
	}
	l.decide(&d, &batch.Query{Rule: r.name, Key: key, Cost: 1}, l.now())
	return d
}

// TakeAt judges a key at time t with a cost, as [Limiter.TakeAt] does.
func (r *RuleLimiter) TakeAt(t time.Time, n uint64, key ...string) (d Decision) {
	l := r.limiter
	if at := r.current(); at.raw && len(key) == 1 && key[0] != "" && l.memory.decideFast(&d, at.set, at.i, nil, nanos(t), key[0], n, 0, nil) {
		return d
	}
	l.decide(&d, &batch.Query{Rule: r.name, Key: key, Cost: n}, nanos(t))
	return d
}

// TakeLimit judges a key now by a limit that comes with the event, such as the plan of a
// customer: limit replaces N in the rule's limit with [Limit.AtMost], which caps it. The key
// has one window, so an upgrade or a downgrade takes effect in the middle of it. n is the
// cost, and a limit of 0 is N of the rule, which [Rule.LimitBy] may determine from the key.
// Under a rule without AtMost, the decision has an Err and refuses.
func (r *RuleLimiter) TakeLimit(limit, n uint64, key ...string) (d Decision) {
	l := r.limiter
	if at := r.current(); limit > 0 && at.atMost > 0 && len(key) == 1 && key[0] != "" {
		if l.memory.decideFast(&d, at.set, at.i, l, 0, key[0], n, min(limit, at.atMost), nil) {
			return d
		}
	}
	l.decide(&d, &batch.Query{Rule: r.name, Key: key, Limit: limit, Cost: n}, l.now())
	return d
}

// Peek returns what Take would decide, and changes nothing.
func (r *RuleLimiter) Peek(key ...string) (d Decision) {
	r.limiter.decide(&d, &batch.Query{Rule: r.name, Key: key, Cost: 1, Peek: true}, r.limiter.now())
	return d
}

// Reserve judges a key now with a cost that is known only later; see
// [Limiter.Reserve].
func (r *RuleLimiter) Reserve(n uint64, key ...string) *Reservation {
	res := new(Reservation)
	r.limiter.reserve(&batch.Query{Rule: r.name, Key: key, Cost: n}, r.limiter.now(), res)
	return res
}

// Wait waits until a key is allowed with a cost of n; see [Limiter.Wait].
func (r *RuleLimiter) Wait(ctx context.Context, n uint64, key ...string) (*Reservation, error) {
	return r.limiter.wait(ctx, batch.Query{Rule: r.name, Key: key, Cost: n})
}

// Charge adds n to a key's counts, now, for a cost that becomes known after Take, such as the
// tokens of an answer. It refuses nothing and may exceed the limit; the key is then refused until
// the charge has left the window. A charge beyond the limit saturates: a log keeps at most as
// many times as its limit, and a bucket at most twice its burst. The guarantee of at most N in
// any window does not include charges.
//
// Charge is not a hit for a ban, and a key whose client is on the allow list is not charged. The
// key can be evicted like any other when the budget is spent.
func (r *RuleLimiter) Charge(n uint64, key ...string) error {
	_, err := r.adjust(store.Charge, r.limiter.now(), n, key)
	return err
}

// Refund gives back up to n units of a key, now, and returns the number that was given back: the
// least of the rule's limits. It is for callers without a [Reservation] to settle, for example
// after an upload that failed.
//
// The oldest events are returned, because the caller does not identify its events. So Refund gives
// no credit: later, no more is available than without the caller's events, and no window allows
// more than the limit and the units given back in it.
//
// A bucket (GCRA, LeakyBucket) gives back whole units that have not drained. Units are not given
// back if they have left the window, if a sketch counts them because the budget is spent, or if
// they were charged beyond the size of a bucket that has not been empty since. Under [InFlight],
// each returned unit ends one event. Hits and refusals that count toward a ban stay, and a
// current ban continues.
//
// Do not also settle a Reservation of the same event: it would be given back twice.
func (r *RuleLimiter) Refund(n uint64, key ...string) (uint64, error) {
	return r.adjust(store.Refund, r.limiter.now(), n, key)
}

// adjust has the store change what a key has used, and returns how much was given back.
func (r *RuleLimiter) adjust(change store.Change, now int64, n uint64, key []string) (uint64, error) {
	l := r.limiter
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	ctx, cancel := l.bounded()
	defer cancel()
	sc.adjust = adjustment{}
	err := l.whileStale(func(set *Set) error {
		if err := sc.collectRule(set, r.name, key); err != nil {
			return err
		}
		rule := sc.subjects[0].Outcome.Rule
		if change != store.Reset && set.allowsKey(rule, sc.keys) {
			return nil
		}
		sc.adjust = adjustment{Change: change, Set: set, Rule: rule, Key: sc.keys, Now: now, N: n}
		err := l.counts.Adjust(ctx, &sc.adjust)
		if err == nil && change == store.Refund {
			sc.subjects[0].Outcome.Charged = true
			l.noteEnd(set, sc.subjects, n)
		}
		return err
	})
	return sc.adjust.Taken, err
}

// Reset deletes the counts of a key: its limits and the hits toward a ban. A current ban
// continues; remove it from [Limiter.Bans] to end it. A reservation from before is not given back
// when it is settled. The counts of a key in a sketch, because the budget is spent, cannot be
// deleted.
func (r *RuleLimiter) Reset(key ...string) error {
	_, err := r.adjust(store.Reset, 0, 0, key)
	return err
}

// current returns where r's rule is now.
func (r *RuleLimiter) current() *ruleAt {
	set := r.limiter.set.Load()
	if at := r.at.Load(); at != nil && at.set == set {
		return at
	}
	return r.find(set)
}

// find finds r's rule in set.
func (r *RuleLimiter) find(set *Set) *ruleAt {
	at := &ruleAt{set: set, i: -1}
	if i, ok := set.names[r.name]; ok {
		at.i = i
		raw := r.limiter.memory != nil && set.raw(i)
		at.raw = raw && set.rules[i].LimitBy == nil
		if varying := set.varying[i]; raw && varying >= 0 {
			at.atMost = set.rules[i].Limits[varying].AtMost
		}
	}
	r.at.Store(at)
	return at
}

// raw reports whether every key of the i-th rule is its only value, unchanged, and
// the allow list says nothing about it.
func (s *Set) raw(i int) bool {
	k := &s.rules[i].Key
	fields := keyvalue.Fields(*k)
	if len(k.Fields()) > 1 || len(fields) > 1 || !s.allow.IsEmpty() && s.clients[i] >= 0 {
		return false
	}
	return k.Fold().Off || fields[0] != match.Client.String() && fields[0] != match.Path.String()
}
