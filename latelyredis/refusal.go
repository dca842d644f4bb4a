package latelyredis

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/ratelimit"
)

// A node remembers what Redis has refused, until that can change: an event like it is refused
// without a round trip, so that a flood of one key costs Redis nothing. Only a refusal that
// nobody has to count is remembered, one by a rule without CountRefused and without a ban.
//
// It ends with its RetryAfter, and before that when this node gives something back to the key, or
// resets it. When another node does so for any key, its next sync changes a number in Redis, or that of any other node
// when it has ended. Each sync reads the number, and all refusals end when it has changed, or when the clock of the server
// was set.

// refusalMemory bounds the bytes of the refusals of a rule set: of about 160,000 keys.
const refusalMemory = 16 << 20

// refusalFresh is how old the newest answer to sync may be for refusals to be used, in
// microseconds: without it, this node may have missed what another has given back.
const refusalFresh = int64(syncTimeout / time.Microsecond)

// clockSet is by how much the clock of the server must have moved against that of the node for
// refusals to end, in microseconds. It is larger than the clock error of a short round trip, and
// smaller than the step at which scripts shift a record.
const clockSet = 50_000

// The words of a record. Times are in microseconds.
const (
	wordEnds  = iota // when to ask again, by the clock of the node
	wordReset        // when nothing is counted any more, by the same
	wordCost         // of the event
	wordN            // that it brought, or 0
	wordLeft         // Remaining
	wordLimit        // LimitIndex
	wordStamp        // see refusals
	refusalWords
)

// refusals is the state that the remembered refusals of all rules share. The records are in the rules.
type refusals struct {
	seed maphash.Seed

	// stamps has a generation per hash bucket. It increases when earlier refusals may be
	// outdated; records and answers of an older generation are ignored.
	stamps [1024]atomic.Uint64

	gaveBack atomic.Bool  // this node has given something back since it told the others
	synced   atomic.Int64 // when the newest answer to sync was asked for

	told  int64 // the number by which nodes tell each other; guarded by Store.syncing
	ahead int64 // by how much the server was ahead; guarded by Store.syncing
}

func (f *refusals) stamp(hash uint64) *atomic.Uint64 { return &f.stamps[hash%uint64(len(f.stamps))] }

// end ends all.
func (f *refusals) end() {
	for i := range f.stamps {
		f.stamps[i].Add(1)
	}
}

// sync notes an answer to a call of sync that was sent at a time of the node: the number that
// changes when a node has given something back, and by how much the server is ahead of the node.
func (f *refusals) sync(sent, told, ahead int64) {
	moved := ahead - f.ahead
	if told != f.told || max(moved, -moved) > clockSet {
		f.told, f.ahead = told, ahead
		f.end()
	}
	f.synced.Store(sent)
}

// hash returns the hash of a key in all tables.
func (f *refusals) hash(key []byte) uint64 { return maphash.Bytes(f.seed, key) }

// remembersRefusals reports whether refusals by r are remembered: not if Redis has to count them, nor under
// InFlight, where another event may end at any time, nor under a bucket that drains faster when another event brings
// a larger limit.
func remembersRefusals(r *ratelimit.Rule) bool {
	variable := slices.ContainsFunc(r.Limits, func(l ratelimit.Limit) bool { return isVariable(r.Algorithm, l) })
	return !countsRefusals(r) && len(r.Limits) > 0 && r.Algorithm != ratelimit.InFlight && !variable
}

// countsRefusals reports whether an event under r that is refused, by this rule or another, has
// to reach Redis.
func countsRefusals(r *ratelimit.Rule) bool { return r.CountRefused || r.Ban != nil }

// newTables makes the tables of l's rules, of refusals and grants. A rule for which there is no memory is decided in Redis.
func (s *Store) newTables(l *layout) {
	refused, granted := keytable.NewBudget(refusalMemory), keytable.NewBudget(grantMemory)
	policy := endingPolicy{m: s.mirror}
	for i := range l.rules {
		r, rl := l.set.Rules()[i], &l.rules[i]
		if remembersRefusals(r) {
			rl.refused, _ = keytable.New(s.refusals.seed, keytable.Config{Words: refusalWords, Budget: refused, Policy: policy})
		}
		if s.batched && grants(r) {
			rl.grants, _ = keytable.New(s.refusals.seed, keytable.Config{Words: grantWords, Budget: granted, Policy: grantPolicy{policy}})
		}
	}
}

// endingPolicy is the eviction policy of a table whose records end at the time wordEnds: the next to end is
// evicted first.
type endingPolicy struct {
	keytable.Plain
	m *mirror
}

func (endingPolicy) Weight(r keytable.Record) uint64 { return r.Words()[wordEnds] }

func (p endingPolicy) Expired(r keytable.Record) bool {
	return int64(r.Words()[wordEnds]) <= p.m.now()
}

// refuseKnown decides about a request that was refused already, or that a remembered refusal refuses, and reports whether
// that is so. A rule without one is not judged: it is Skipped, as by a ban.
func (s *Store) refuseKnown(l *layout, r *request) bool {
	node := s.mirror.now()
	if r.Cost == 0 || node-s.refusals.synced.Load() >= refusalFresh {
		return false
	}
	refused := r.Refused
	for i := range r.Subjects {
		sub := &r.Subjects[i]
		rl := &l.rules[sub.Outcome.Rule]
		if rl.countsRefusals {
			return false
		}
		known := rl.refused != nil && s.refusal(rl, sub, r.Cost, node)
		if !known {
			sub.Outcome = outcome{Rule: sub.Outcome.Rule, Set: sub.Outcome.Set, Skipped: true}
		}
		refused = refused || known && !rl.shadow
	}
	if refused {
		r.Now = (node + s.mirror.ahead.Load()) * 1000
	}
	return refused
}

// refusal fills in the outcome of a subject that was refused, if that is remembered.
func (s *Store) refusal(rl *rule, sub *subject, cost uint64, node int64) bool {
	hash := s.refusals.hash(sub.Key)
	record, state := rl.refused.Lock(hash, readOnly(sub.Key))
	if state != keytable.Found {
		return false
	}
	defer record.Unlock()
	w := record.Words()
	left := int64(w[wordEnds]) - node
	if left <= 0 || w[wordCost] != cost || w[wordN] != sub.N || w[wordStamp] != s.refusals.stamp(hash).Load() {
		return false
	}
	sub.Outcome = outcome{
		Rule: sub.Outcome.Rule, Set: sub.Outcome.Set, Refused: true,
		Limit: rl.mostFor(int(w[wordLimit]), sub.N), LimitIndex: int(w[wordLimit]), Remaining: w[wordLeft],
		RetryAfter: duration(left), ResetAfter: duration(max(int64(w[wordReset])-node, 0)),
	}
	return true
}

// remember keeps what the answers to groups say of later events: refusals and grants.
func (s *Store) remember(l *layout, groups []*group) {
	for _, g := range groups {
		if g.err != nil {
			continue
		}
		for k, i := range g.members {
			sub := &g.request.Subjects[i]
			rl := &l.rules[sub.Outcome.Rule]
			if sub.Outcome.Refused && rl.refused != nil && !sub.Outcome.Banned && g.request.Cost > 0 {
				s.rememberRefusal(rl, g, sub)
			}
			if rl.grants != nil {
				s.grant(rl, sub.Key, g.answer(k), g.sent, false)
			}
		}
	}
}

func (s *Store) rememberRefusal(rl *rule, g *group, sub *subject) {
	o, hash := &sub.Outcome, s.refusals.hash(sub.Key)
	retry := o.RetryAfter.Microseconds()
	if o.RetryAfter == ratelimit.Never {
		retry = 2 * never // so that never is left for long
	}
	record, state := rl.refused.LockOrAdd(hash, readOnly(sub.Key))
	if state != keytable.Found && state != keytable.Added {
		return
	}
	defer record.Unlock()
	if s.refusals.stamp(hash).Load() != g.stamp {
		return
	}
	w := record.Words()
	w[wordEnds], w[wordReset] = uint64(g.sent+retry), uint64(g.sent+o.ResetAfter.Microseconds())
	w[wordN] = sub.N
	w[wordCost], w[wordLeft], w[wordLimit], w[wordStamp] = g.request.Cost, o.Remaining, uint64(o.LimitIndex), g.stamp
}

// endReturned ends the refusals of keys to which one of the calls has given something back, or may
// have: here at once, and on other nodes after the next call of sync here and there.
func (s *Store) endReturned(l *layout, calls []*call) {
	for _, c := range calls {
		if c.returns && slices.ContainsFunc(c.rules, func(i int) bool { return l.rules[i].refused != nil }) {
			s.refusals.stamp(s.refusals.hash(c.key)).Add(1)
			s.refusals.gaveBack.Store(true)
		}
	}
}

// readOnly returns key as a string, which is valid while nobody changes key.
func readOnly(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }
