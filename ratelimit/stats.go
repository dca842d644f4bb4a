package ratelimit

import (
	"math"
	"sync/atomic"

	"github.com/lately-go/lately/internal/counting/ring"
)

// Stats are the decisions of a [Limiter] so far, and its use of memory. Its
// size depends on the number of rules, never on the number of keys.
type Stats struct {
	Rules []RuleStats

	// Budget is the bound of the memory store in bytes, negative without one. Limits and
	// bans use Bytes of it. Reserved is kept free for bans by hand, and for the
	// sketches of keys that do not fit. Bytes + Reserved is at most Budget. All
	// are 0 for another store.
	Budget, Bytes, Reserved int64

	// Bans counts the banned keys, as of the newest time at which a key was added; with
	// more than 10,000 bans, the count may be 10 µs per ban older. Remembered counts the
	// keys whose ban has ended, but makes the next one longer. BansRefused counts bans that
	// could not begin because the table was full, BansDropped ended bans that were deleted
	// early to free a place.
	Bans, Remembered, BansRefused, BansDropped uint64

	// Fallbacks counts decisions by fail policies, because the store could not
	// decide.
	Fallbacks uint64
}

// RuleStats counts the decisions of one rule. Each event that it judged is in
// exactly one of Allowed, Refused, Banned, Shadow and Skipped.
type RuleStats struct {
	Rule string

	Allowed uint64 // by this rule; another may have refused
	Refused uint64 // by this rule's limits
	Banned  uint64 // refused by this rule's bans
	Shadow  uint64 // that a shadow rule would have refused, by a limit or a ban
	Skipped uint64 // not judged, because a ban of another rule held

	// Lacking counts events that match the rule and lack a field of its key. The rule does not
	// judge them, or refuses them if the [match.Source] of the field has Refuse. LackingRefused
	// counts the latter; they are included in Refused, or in Shadow under a shadow rule.
	Lacking, LackingRefused uint64

	BansStarted uint64

	Keys     int    // that it holds
	Bans     int    // that hold
	Limit    uint64 // current N of the first limit, which an Adapt may change
	Expired  uint64 // keys evicted with empty windows
	Evicted  uint64 // unprotected keys evicted to free memory
	Sketched uint64 // decisions about keys that the sketch counts
	Full     uint64 // decisions that refused because no memory was left
}

// Stats returns what m has decided so far and what it holds. It adds up some
// dozens of counters a rule, and counts the bans, at 100 ns each.
func (m *memory) Stats() Stats {
	rs := m.rules.Load()
	s := Stats{Budget: m.config.Budget, Reserved: m.bans.Reserved()}
	if s.Budget == unbounded {
		s.Budget = -1
	}
	for _, mr := range rs.rules {
		r := RuleStats{Rule: mr.Name, Keys: mr.records.table.Len()}
		mr.decisions.add(&r)
		gone := mr.records.table.Stats()
		r.Expired, r.Evicted = gone.Expired, gone.Evicted
		s.Reserved += mr.records.reserved()
		if len(mr.Limits) > 0 {
			r.Limit = mr.Limits[0].N
			if mr.adapt != nil {
				r.Limit = mr.adapt.n.Load()
			}
		}
		s.Rules = append(s.Rules, r)
	}
	s.Bytes = max(m.budget.Used()-s.Reserved, 0) // which others may have taken meanwhile
	bans := m.bans.Counts(rs.now())
	s.BansRefused, s.BansDropped = bans.Refused, bans.Dropped
	for i, mr := range rs.rules {
		s.Rules[i].Bans = bans.Held[mr.id] + bans.Held[mr.id|ofNetworks]
		s.Bans += uint64(s.Rules[i].Bans)
	}
	s.Remembered = uint64(max(bans.Len-int(s.Bans), 0)) // Bans may be older
	return s
}

// Stats returns the decisions of l so far and the state of its store. With a shared store,
// the decisions are those of this limiter, the bans are its copy of the store's list, and
// all else is about the memory that decides while the store is unavailable.
func (l *Limiter) Stats() Stats {
	s := Stats{}
	if m := l.local.Load(); m != nil {
		s = m.Stats()
	}
	if l.memory == nil {
		l.addShared(&s)
	}
	s.Fallbacks = l.fallbacks.Load()
	return s
}

// addShared makes s, of local memory, what a limiter with a shared store has decided.
func (l *Limiter) addShared(s *Stats) {
	l.mu.Lock() // all rules are of one Update
	defer l.mu.Unlock()
	local := make(map[string]RuleStats, len(s.Rules))
	for _, r := range s.Rules {
		local[r.Rule] = r
	}
	bans := banCopy(l.store.Bans())
	held := bans.held()
	set, all := l.set.Load(), *l.rules.Load()
	s.Rules = make([]RuleStats, len(all))
	for i := range all {
		rule, was, r := set.rules[i], local[all[i].name], &s.Rules[i]
		*r = RuleStats{Rule: rule.Name, Bans: held[rule.Name], Keys: was.Keys, Limit: was.Limit, Expired: was.Expired, Evicted: was.Evicted}
		if all[i].decisions.add(r); len(rule.Limits) > 0 && rule.Adapt == nil {
			r.Limit = rule.Limits[0].N // local memory has a share of it
		}
		r.Sketched, r.Full = was.Sketched, was.Full
		s.Bans += uint64(r.Bans)
	}
	s.Remembered = 0
}

// count counts the outcomes of r, which a shared store has judged, or local memory.
func (l *Limiter) count(r *request) {
	for i := range r.Subjects {
		l.countOutcome(r, &r.Subjects[i])
	}
}

// countOutcome counts the outcome of one rule of r. The memory store counts by itself.
func (l *Limiter) countOutcome(r *request, s *subject) {
	if l.memory != nil || r.Peek || !counted(r, s.Look, &s.Outcome) {
		return
	}
	o := &s.Outcome
	rule, all := r.Set.rules[o.Rule], *l.rules.Load()
	i := o.Rule
	for n := 0; n < len(all); n++ { // one step, unless an Update came between
		if i %= len(all); all[i].name == rule.Name {
			all[i].decisions.count(o, rule.Shadow)
			return
		}
		i++
	}
}

// now returns the newest time at which a key was added.
func (rs *memoryRules) now() int64 {
	now := int64(math.MinInt64)
	for _, mr := range rs.rules {
		now = max(now, mr.records.now.Load())
	}
	return now
}

// decisionCounts count what a rule decided, in a stripe for each of some goroutines. By
// the hash of keys, every second decision of two cores would wait for a cache line that the
// other has written to last.
type decisionCounts struct {
	_       counterStripe // the one that every index touches
	stripes [1 << stripeBits]counterStripe
	lacking [1 << stripeBits]lackingStripe
}

// A lackingStripe counts events that lack a field of the key, in a cache line.
type lackingStripe struct {
	all, refused atomic.Uint64
	_            [48]byte
}

const stripeBits = 6

type counterStripe struct {
	allowed, refused, banned, started, shadow, skipped, sketched, full atomic.Uint64
}

func (t *decisionCounts) stripe() *counterStripe { return &t.stripes[ring.Stripe(stripeBits)] }

// counted reports whether o is a decision about an event. A rule that waits for the answer decides about a request
// only if it refuses it, and one that has banned the key meanwhile not about the answer.
func counted(r *request, look bool, o *outcome) bool {
	return !look && !r.Answer || o.Started || o.Refused == look
}

// count counts one outcome.
func (t *decisionCounts) count(o *outcome, shadow bool) {
	s := t.stripe()
	switch {
	case o.Skipped:
		s.skipped.Add(1)
	case o.Refused && shadow:
		s.shadow.Add(1)
	default:
		s.decided(!o.Refused, o.Banned)
	}
	if o.Started {
		s.started.Add(1)
	}
}

// elsewhere counts a decision about a key without a record: by the sketch, or a
// refusal because no memory was left.
func (t *decisionCounts) elsewhere(full bool) {
	if s := t.stripe(); full {
		s.full.Add(1)
	} else {
		s.sketched.Add(1)
	}
}

// decided counts one outcome of a rule that is no shadow rule.
func (s *counterStripe) decided(allowed, banned bool) {
	switch {
	case allowed:
		s.allowed.Add(1)
	case banned:
		s.banned.Add(1)
	default:
		s.refused.Add(1)
	}
}

// add adds what t has counted to r.
func (t *decisionCounts) add(r *RuleStats) {
	for i := range t.stripes {
		s := &t.stripes[i]
		r.Allowed += s.allowed.Load()
		r.Refused += s.refused.Load()
		r.Shadow += s.shadow.Load()
		r.Banned += s.banned.Load()
		r.BansStarted += s.started.Load()
		r.Sketched += s.sketched.Load()
		r.Full += s.full.Load()
		r.Skipped += s.skipped.Load()
		r.LackingRefused += t.lacking[i].refused.Load() // first, so that it is never more than Lacking
		r.Lacking += t.lacking[i].all.Load()
	}
}
