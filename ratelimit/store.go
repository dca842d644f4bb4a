package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/store"
)

// What the limiter asks of a store.
type (
	shared     = store.Store[*Set, BanRecord]
	request    = store.Request[*Set]
	subject    = store.Subject[*Set]
	outcome    = store.Outcome[*Set]
	settlement = store.Settlement[*Set]
	adjustment = store.Adjustment[*Set]
)

// storeTimeout is Config.StoreTimeout by default.
const storeTimeout = 20 * time.Millisecond

// ErrKeyTooLong is the error of a key that a store does not take. With the memory
// store that is a key of 1 MiB or more.
var ErrKeyTooLong = errors.New("ratelimit: key too long")

// whileStale calls do with the rules as they are, again while the store has moved to
// others, which an Update is about to publish. It returns the error of the last call.
func (l *Limiter) whileStale(do func(*Set) error) error {
	for {
		if err := do(l.set.Load()); !errors.Is(err, store.ErrStale) {
			return err
		}
		runtime.Gosched()
	}
}

// banTimeout bounds a call of the store that bans or unbans a key. No event waits for it, and the caller has
// nothing to decide by instead.
const banTimeout = 2 * time.Second

// bounded returns the context of one call of the store.
func (l *Limiter) bounded() (context.Context, context.CancelFunc) { return l.within(l.timeout) }

func (l *Limiter) within(timeout time.Duration) (context.Context, context.CancelFunc) {
	if l.memory != nil {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), timeout)
}

// Update changes the rules while l is in use. No decision is made without the
// rules, none is delayed for longer than it takes to carry some hundred keys, and
// what was counted is carried:
//
//   - A rule is known by its name. One that is new, or has another key than
//     before, starts with nothing counted; one that is gone is forgotten, with
//     its bans.
//   - A rule that counts as before (its limits, algorithm, zone, and what the ban
//     counts) keeps its counts as they are. How long bans last, what it matches,
//     shadow and fail policy may change at any time.
//   - Else each limit takes over from the limit before with the shortest span that is
//     no shorter than its own, or if all are shorter from the longest; a ban that counts
//     the same takes over from the ban. The new limit is charged with what the one before
//     still counted, at no earlier times, and judges with that: never more is allowed
//     than N in its own count. A bucket (GCRA, LeakyBucket) holds no more than its burst
//     and as much again, or N if that is more, so one that is lowered and raised again
//     loses what was above that.
//   - So it is when the algorithm changes. What the limit before no longer counted, the
//     new one does not learn: what has drained from a bucket, and what came in an earlier
//     window of Fixed or an earlier period of Calendar. Over a change from one of these
//     three, a window may have what the limit before allows at worst and what the new one
//     does. InFlight counts what is under way: a change from or to it starts with nothing
//     counted.
//   - Bans that hold go on.
//
// The error says what is wrong with the rules, or is the store's; nothing has
// changed then.
func (l *Limiter) Update(set *Set) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.counts.Update(context.Background(), set, func() { l.use(set) })
	if err != nil {
		return fmt.Errorf("ratelimit: the rules stay as they are: %w", err)
	}
	if local := l.local.Load(); local != nil && local != l.memory && local.Update(context.Background(), set, func() {}) != nil {
		l.local.Store(nil) // it has no budget for both: it begins with nothing counted
	}
	return nil
}

// failOver decides by the rules' fail policies after the store could not,
// because of err. It leaves in r the subjects that were judged here. Its error
// is store.ErrStale or nil.
func (l *Limiter) failOver(r *request, err error) (Decision, error) {
	l.fallbacks.Add(1)
	local := 0 // subjects that memory judges, moved to the front
	for i := range r.Subjects {
		s := &r.Subjects[i]
		rule := &r.Set.rules[s.Outcome.Rule]
		switch {
		case rule.Shadow && len(s.Key) > maxKey:
			// Its key is what no store takes, and it would refuse nothing.
		case rule.OnStoreFailure == FailLocal:
			r.Subjects[local], r.Subjects[i] = r.Subjects[i], r.Subjects[local]
			local++
		case rule.OnStoreFailure == FailClosed && !rule.Shadow && !r.Answer:
			s.Outcome = outcome{Rule: s.Outcome.Rule, Refused: true}
			l.countOutcome(r, s)
			r.Subjects = nil
			return Decision{Rule: rule.Name, Err: err}, nil
		}
	}
	others := r.Subjects[local:]
	r.Subjects = r.Subjects[:local]
	d := Decision{Allowed: true}
	if local > 0 {
		m, localErr := l.localFor(r.Set)
		if localErr == nil {
			localErr = m.decide(r)
		}
		if localErr != nil {
			r.Subjects = nil
			return Decision{Err: localErr}, localErr // a key that no store takes
		}
		d = fold(r)
		l.count(r)
	}
	for i := range others {
		if s := &others[i]; r.Set.rules[s.Outcome.Rule].OnStoreFailure == FailOpen {
			s.Outcome = outcome{Rule: s.Outcome.Rule}
			l.countOutcome(r, s)
		}
	}
	d.Err = err
	return d, nil
}

// note counts in local memory what the store has charged, so that an outage begins with what
// this process has allowed in the windows.
func (l *Limiter) note(r *request, now int64) {
	if l.memory != nil || r.Peek || r.Cost == 0 {
		return
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		rule := &r.Set.rules[s.Outcome.Rule]
		if !s.Outcome.Charged || rule.OnStoreFailure != FailLocal {
			continue
		}
		m, err := l.localFor(r.Set)
		if err != nil {
			return // an Update is under way
		}
		m.Adjust(context.Background(), &adjustment{Change: store.Charge, Set: r.Set, Rule: s.Outcome.Rule, Key: s.Key, Now: now, N: r.Cost})
	}
}

// noteEnd ends events in flight in local memory that note has counted there. A local log that had no place for
// all of them gives nothing back: they stay until their span is over.
func (l *Limiter) noteEnd(set *Set, subjects []subject, n uint64) {
	m := l.local.Load()
	if m == nil || l.memory != nil {
		return
	}
	for i := range subjects {
		s := &subjects[i]
		if rule := &set.rules[s.Outcome.Rule]; s.Outcome.Charged && rule.Algorithm == InFlight && rule.OnStoreFailure == FailLocal {
			m.Adjust(context.Background(), &adjustment{Change: store.Refund, Set: set, Rule: s.Outcome.Rule, Key: s.Key, Now: l.now(), N: n})
		}
	}
}

// localFor returns the memory that decides while the store is away, with the share of each
// limit that is this process's.
func (l *Limiter) localFor(set *Set) (*memory, error) {
	nodes := l.nodes()
	m := l.local.Load()
	if m != nil && m.nodes.Load() == nodes {
		return m, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set.Load() != set {
		return nil, store.ErrStale
	}
	if m = l.local.Load(); m != nil && m.update(set, nodes, func() {}) == nil {
		return m, nil
	}
	m, err := newMemory(set, Config{}, nodes)
	if err != nil {
		return nil, err
	}
	l.local.Store(m)
	return m, nil
}

// nodes returns how many processes share the store, 1 if it does not know.
func (l *Limiter) nodes() int64 {
	if l.memory != nil {
		return 1
	}
	return max(int64(l.store.Nodes()), 1)
}

// shareOfRule returns r with the share of its limits that one of so many nodes has: 1 at least. A
// rule with Adapt keeps its limit.
func shareOfRule(r *Rule, nodes uint64) *Rule {
	if nodes <= 1 || r.Adapt != nil {
		return r
	}
	part := *r
	part.Limits = slices.Clone(r.Limits)
	for i := range part.Limits {
		l := &part.Limits[i]
		l.N, l.Burst, l.AtMost = shareOf(l.N, nodes), shareOf(l.Burst, nodes), shareOf(l.AtMost, nodes)
	}
	return &part
}

func shareOf(n, nodes uint64) uint64 { return max(n/nodes, min(n, 1)) }
