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

// ErrKeyTooLong is the error for a key that is too long for the store. For the
// memory store that is 1 MiB or more.
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

// Update changes the rules while l is in use. Every decision is made under the
// old or the new rules, none waits for longer than it takes to carry some
// hundred keys, and counts are carried over:
//
//   - Rules are identified by name. A new rule, or one whose key changed,
//     starts at zero. The counts and bans of a removed rule are deleted.
//   - A rule with the same limits, algorithm, zone and counter of its ban keeps
//     its counts. Its condition, the length of bans, shadow and fail policy may
//     change at any time.
//   - Otherwise each limit inherits the counts of the old limit with the shortest
//     span that is at least as long, or of the longest if all are shorter; a ban
//     inherits if it counts the same. The new limit is charged with the events that
//     the old one still counted, at the same times or later: it never allows more
//     than N in its own count. A bucket (GCRA, LeakyBucket) holds at most twice its
//     burst, or N if that is more, so a limit that is lowered and raised again loses
//     what was above that.
//   - The same holds when the algorithm changes. The new limit does not receive events
//     that the old one no longer counted: those that drained from a bucket, or came in
//     an earlier window of Fixed or Calendar. A window across such a change may
//     therefore contain the worst case of the old limit and that of the new one.
//     InFlight counts cannot be converted: a change from or to InFlight starts at zero.
//   - Current bans continue.
//
// The error is about the rules, or from the store; nothing has changed then.
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
		rule := r.Set.rules[s.Outcome.Rule]
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
		rule := r.Set.rules[s.Outcome.Rule]
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
		if rule := set.rules[s.Outcome.Rule]; s.Outcome.Charged && rule.Algorithm == InFlight && rule.OnStoreFailure == FailLocal {
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
