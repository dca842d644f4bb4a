package latelyredis

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/ratelimit"
)

// With Config.Batched, a node allows events without a round trip and tells Redis of them a few
// milliseconds later. Each answer of Redis about a key grants the node a part of what is left of the
// limit: an eighth, divided by the nodes. It allows no more than that until Redis has counted it;
// what is above is decided by Redis. So all nodes together have never allowed more than an eighth of the
// limit without Redis knowing it, however long it takes to tell it; docs/redis.md derives the bound.
//
// A record is changed by three: an allowed event adds to what is pending; a merge sends it, and no other
// before it was answered; an answer sets the grant. What an answer says may be older than what a merge
// that was answered meanwhile said: then it only lowers the grant.

const (
	// mergeEvery is how long allowed events are collected until they are sent.
	mergeEvery = 5 * time.Millisecond

	// mergeAgain is how long after a failure they are sent again.
	mergeAgain = 100 * time.Millisecond

	// mergeTimeout bounds one call.
	mergeTimeout = time.Second

	// mergeBatch is how many keys are sent together.
	mergeBatch = 256

	// grantPart is the part of what is left of a limit that is granted to all nodes together.
	grantPart = 8

	// grantMemory bounds the bytes of the grants of a rule set.
	grantMemory = 32 << 20

	// grantRules is the most rules of an event that is allowed without a round trip.
	grantRules = 8
)

// The words of a record behind wordEnds, when nothing is counted any more. Times are in microseconds, by the
// clock of the node.
const (
	grantAllows  = wordEnds + 1 + iota // how much may be pending and sent
	grantPending                       // allowed and not sent
	grantSent                          // sent and not answered
	grantAt                            // when a merge was answered last
	grantLeft                          // Remaining in the answer
	grantLimit                         // LimitIndex
	grantWords
)

// merges are what has been allowed and is to be sent.
type merges struct {
	mu    sync.Mutex
	queue []*merge
	wake  chan struct{} // that there is something in the queue
	last  atomic.Uint64 // the number of the last merge
}

// A merge is what a node has allowed of a key under a rule.
type merge struct {
	layout *layout
	rule   *rule
	hash   uint64
	key    []byte
	call   *call // when it was sent: it is sent again until it is answered
}

// grants reports whether events may be allowed under r without a round trip: not if a ban counts
// them, if they are over at any time, if they have to wait for their turn, or if they bring their limit.
func grants(r *ratelimit.Rule) bool {
	if slices.ContainsFunc(r.Limits, func(l ratelimit.Limit) bool { return l.AtMost > 0 }) {
		return false
	}
	if b := r.Ban; b != nil && (b.Of != ratelimit.Refusals || b.Extend || r.Shadow) {
		return false
	}
	return len(r.Limits) > 0 && r.Algorithm != ratelimit.InFlight && r.Algorithm != ratelimit.LeakyBucket
}

// grantPolicy is endingPolicy for grants: no grant ends or is evicted before Redis knows all of it.
type grantPolicy struct{ endingPolicy }

func (p grantPolicy) Weight(r keytable.Record) uint64 {
	if owes(r) {
		return keytable.Protected
	}
	return p.endingPolicy.Weight(r)
}

func (p grantPolicy) Expired(r keytable.Record) bool { return !owes(r) && p.endingPolicy.Expired(r) }

// owes reports whether Redis does not know yet of all that was allowed.
func owes(r keytable.Record) bool { return r.Words()[grantPending]+r.Words()[grantSent] > 0 }

// allowKnown allows an event under the grants of all its rules, and reports whether they suffice.
func (s *Store) allowKnown(l *layout, r *request) bool {
	if r.Cost == 0 || r.Peek || r.Looks || r.Settled || r.Refused || len(r.Subjects) > grantRules {
		return false
	}
	var held [grantRules]keytable.Record // in the order of rules, which is that of tables
	n, allowed := 0, true
	for n < len(r.Subjects) && allowed {
		sub := &r.Subjects[n]
		t, state := l.rules[sub.Outcome.Rule].grants, keytable.Absent
		if t != nil {
			held[n], state = t.Lock(s.refusals.hash(sub.Key), readOnly(sub.Key))
		}
		if state != keytable.Found {
			allowed = false
			break
		}
		w := held[n].Words()
		allowed = w[grantAllows] >= w[grantPending]+w[grantSent] && r.Cost <= w[grantAllows]-w[grantPending]-w[grantSent]
		n++
	}
	node, begin := s.mirror.now(), uint64(0) // begin: the rules for which a merge begins, a bit each
	if allowed {
		for i := range r.Subjects {
			sub := &r.Subjects[i]
			allow(&l.rules[sub.Outcome.Rule], sub, held[i].Words(), r.Cost, node)
			if !held[i].Flag() {
				held[i].SetFlag() // it is in the queue
				begin |= 1 << i
			}
		}
		r.Now = (node + s.mirror.ahead.Load()) * 1000
	}
	for i := range n {
		held[i].Unlock()
	}
	for i := 0; begin != 0; i, begin = i+1, begin>>1 {
		if sub := &r.Subjects[i]; begin&1 == 1 {
			s.merges.add(&merge{layout: l, rule: &l.rules[sub.Outcome.Rule], hash: s.refusals.hash(sub.Key), key: slices.Clone(sub.Key)})
		}
	}
	return allowed
}

// allow charges a grant, and fills in the outcome. Its Mark is 0, which no charge in Redis has.
func allow(rl *rule, sub *subject, w []uint64, cost uint64, node int64) {
	w[grantPending] += cost
	sub.Mark = 0
	sub.Outcome = outcome{
		Rule: sub.Outcome.Rule, Set: sub.Outcome.Set, Charged: true,
		Limit: rl.most[w[grantLimit]], LimitIndex: int(w[grantLimit]), Remaining: w[grantLeft] - w[grantPending] - w[grantSent],
		ResetAfter: duration(max(int64(w[wordEnds])-node, 1)),
	}
}

// add adds m to the queue.
func (q *merges) add(m *merge) {
	q.mu.Lock()
	q.queue = append(q.queue, m)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// grant sets the grant of a key after an answer to what was sent at a time of the node: to a merge,
// or else to a decision.
func (s *Store) grant(rl *rule, key []byte, a answer, sent int64, merged bool) {
	record, state := rl.grants.LockOrAdd(s.refusals.hash(key), readOnly(key))
	if state != keytable.Found && state != keytable.Added {
		return
	}
	defer record.Unlock()
	w, now := record.Words(), s.mirror.now()
	allows := uint64(0)
	if nodes := uint64(s.Nodes()); nodes > 0 && a.status&(answerBanned|answerSkipped|answerOfBan) == 0 {
		allows = a.remaining / (grantPart * nodes)
	}
	if merged {
		w[grantSent], w[grantAt] = 0, uint64(now)
	} else if uint64(sent) < w[grantAt] {
		allows = min(allows, w[grantAllows]) // a merge may have said something newer
	}
	w[grantAllows], w[grantLeft], w[grantLimit] = allows, a.remaining, uint64(a.limit)
	w[wordEnds] = uint64(now + max(a.reset, refusalFresh))
}

// startMerging sends what is allowed, until ctx ends, and then once more.
func (s *Store) startMerging(ctx context.Context) {
	s.merges.wake = make(chan struct{}, 1)
	s.background.Go(func() {
		var again <-chan time.Time
		for {
			select {
			case <-s.merges.wake:
			case <-again:
			case <-ctx.Done():
			}
			select {
			case <-time.After(mergeEvery):
			case <-ctx.Done():
				bounded, cancel := context.WithTimeout(context.Background(), mergeTimeout)
				defer cancel()
				s.merge(bounded)
				return
			}
			if again = nil; !s.merge(ctx) {
				again = time.After(mergeAgain)
			}
		}
	})
}

// merge sends what is in the queue. It reports false if some of it stays there.
func (s *Store) merge(ctx context.Context) bool {
	s.merges.mu.Lock()
	queue := s.merges.queue
	s.merges.queue = nil
	s.merges.mu.Unlock()
	var failed []*merge
	for len(queue) > 0 {
		n := 1
		for n < min(len(queue), mergeBatch) && queue[n].layout == queue[0].layout {
			n++
		}
		failed = append(failed, s.mergeTogether(ctx, queue[0].layout, queue[:n])...)
		queue = queue[n:]
	}
	s.merges.mu.Lock()
	defer s.merges.mu.Unlock()
	s.merges.queue = append(failed, s.merges.queue...)
	return len(failed) == 0
}

// mergeTogether sends merges, and returns those that were not answered.
func (s *Store) mergeTogether(ctx context.Context, l *layout, all []*merge) (failed []*merge) {
	ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
	defer cancel()
	var calls []*call
	number := strconv.FormatUint(s.merges.last.Add(1), 10) // the same of all, so that one script charges several
	for _, m := range all {
		if waits := m.call == nil && !s.begin(m, number); waits {
			failed = append(failed, m)
		} else if m.call != nil {
			calls = append(calls, m.call)
		}
	}
	s.exchange(ctx, l, calls)
	for _, m := range all {
		switch {
		case m.call == nil: // it waits, or all of it was given back
		case m.call.err != nil || len(m.call.data) < uint56+answerBytes:
			failed = append(failed, m)
		default:
			s.grant(m.rule, m.key, m.call.answer(0), 0, true)
		}
	}
	return failed
}

// begin takes what is pending of m's key, and makes the call that charges it under that number, unless there is
// nothing. It reports false if an earlier one was not answered yet.
func (s *Store) begin(m *merge, number string) bool {
	record, state := m.rule.grants.Lock(m.hash, readOnly(m.key))
	if state != keytable.Found {
		return true
	}
	defer record.Unlock()
	w := record.Words()
	if w[grantSent] > 0 {
		return false
	}
	amount := w[grantPending]
	w[grantPending], w[grantSent] = 0, amount
	record.ClearFlag()
	if amount == 0 {
		return true
	}
	head := append(appendUint56(nil, int64(min(amount, maxCost))), askMerge)
	c := s.callAbout(m.layout, m.layout.scripts.decide, string(head), m.key, nil, m.rule.number)
	c.keys = append(c.keys, c.keys[0]+"~"+s.node)
	c.args = append(c.args, number)
	m.call = &c
	return true
}

// changePending calls change with what was allowed of a key and is not sent yet, if there is a grant.
func (s *Store) changePending(rl *rule, key []byte, change func(pending *uint64)) {
	if rl.grants == nil {
		return
	}
	if record, state := rl.grants.Lock(s.refusals.hash(key), readOnly(key)); state == keytable.Found {
		change(&record.Words()[grantPending])
		record.Unlock()
	}
}

// takeBack takes back what was allowed and is not sent yet: so much, or nothing if it is less.
func (s *Store) takeBack(rl *rule, key []byte, amount uint64) (taken bool) {
	s.changePending(rl, key, func(pending *uint64) {
		if taken = *pending >= amount; taken {
			*pending -= amount
		}
	})
	return taken
}
