package hotkeys

import (
	"cmp"
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/counting/heap"
)

// A hotList is the keys that are hot, as a state with versions. It is safe for concurrent use.
type hotList struct {
	budget  int64 // of the bytes of all entries
	now     func() time.Time
	inForce func(*entry) bool // reports whether its rule is in force
	busy    func(*entry) bool // reports whether the key is over its threshold now, so that it stays hot when its time is over

	instance string
	signal   chan struct{} // wakes run after a change
	wake     atomic.Pointer[chan struct{}]

	queue struct {
		mu      sync.Mutex
		entries []entry
		bytes   int64
	}

	mu        sync.Mutex
	version   uint64
	published atomic.Uint64 // the version that watchers were woken for; changes under mu
	known     uint64        // the list has the changes after this version
	nodes     map[id]*node
	order     list.List        // of *node, by version
	cold      list.List        // of *node that are not hot, by version
	due       heap.Heap[*node] // the one that is due first in front
	bytes     int64
	updates   map[span]*Update // since the last publication
	reset     map[string]*Update
	stats     api.HotStats // of the list, but for its bytes
}

// An id identifies a key.
type id struct{ rule, key string }

// newHotList returns an empty list. inForce and busy are called with its lock held.
func newHotList(budget int64, now func() time.Time, inForce, busy func(*entry) bool) *hotList {
	l := &hotList{
		budget: budget, now: now, inForce: inForce, busy: busy,
		signal: make(chan struct{}, 1), nodes: make(map[id]*node), updates: make(map[span]*Update), reset: make(map[string]*Update),
	}
	l.due = heap.New(func(a, b *node) bool { return a.due.Before(b.due) }, func(n *node, place int) { n.place = place })
	var random [8]byte
	rand.Read(random[:]) // never fails
	l.instance = hex.EncodeToString(random[:])
	l.wake.Store(new(make(chan struct{})))
	return l
}

// add adds a key that became hot, or is hot for longer. It does not wait for anything
// that watchers do, unless so many keys were added at once that they take an eighth of
// the budget: then it puts them in order itself.
func (l *hotList) add(e entry) {
	q := &l.queue
	q.mu.Lock()
	q.entries = append(q.entries, e)
	q.bytes += e.bytes()
	full := q.bytes > l.budget/queueShare
	q.mu.Unlock()
	if full {
		l.lock()
		l.unlock()
		return
	}
	l.wakeRun()
}

// queueShare is which share of the budget is for entries that were just added.
const queueShare = 8

// wakeRun wakes run after a change.
func (l *hotList) wakeRun() {
	select {
	case l.signal <- struct{}{}:
	default: // it has not received the last one
	}
}

// lock locks l and brings it up to date: with the entries that were added, and without
// those whose time is over. It returns the current time.
func (l *hotList) lock() time.Time {
	l.mu.Lock()
	l.queue.mu.Lock()
	added := l.queue.entries
	l.queue.entries, l.queue.bytes = nil, 0
	l.queue.mu.Unlock()
	for i := range added {
		l.put(&added[i])
	}
	now := l.now()
	l.expire(now)
	return now
}

// unlock unlocks l, and has watchers woken if there is something new.
func (l *hotList) unlock() {
	fresh := l.version != l.published.Load()
	l.mu.Unlock()
	if fresh {
		l.wakeRun()
	}
}

// put makes the key of e hot, or hot for longer.
//
// REQUIRES: mu.
func (l *hotList) put(e *entry) {
	if !l.inForce(e) {
		return
	}
	n := l.nodes[id{e.Rule, e.ID}]
	switch {
	case n == nil:
		if !l.fit(e.bytes()) {
			l.stats.ListDropped++
			return
		}
		n = &node{entry: *e, place: -1}
		n.order = l.order.PushBack(n)
		l.nodes[id{e.Rule, e.ID}] = n
		l.bytes += e.bytes()
	case !n.hot:
		l.bytes += e.bytes() - n.bytes() // it may be cut otherwise
		e.Changed = n.Changed
		n.entry = *e
	case !n.always() && (e.always() || e.Until.After(n.Until)):
		n.Until, n.Hold, n.Lo, n.Hi, n.Hand = e.Until, e.Hold, e.Lo, e.Hi, e.Hand || n.Hand
	default:
		return
	}
	if !n.hot {
		n.hot, n.joined = true, l.version+1
	}
	if n.cold != nil {
		l.cold.Remove(n.cold)
		n.cold = nil
	}
	l.touch(n)
	l.plan(n, n.Until.Add(-n.notice()))
}

// touch gives n a new version.
//
// REQUIRES: mu.
func (l *hotList) touch(n *node) {
	l.version++
	n.touched = l.version
	l.order.MoveToBack(n.order)
}

// plan has n inspected at that time, or never if it is always hot.
//
// REQUIRES: mu.
func (l *hotList) plan(n *node, at time.Time) {
	n.due = at
	switch {
	case n.always():
		if n.place >= 0 {
			l.due.Remove(n.place)
		}
	case n.place >= 0:
		l.due.Fix(n.place)
	default:
		l.due.Push(n)
	}
}

// expire inspects the keys that are due.
//
// REQUIRES: mu.
func (l *hotList) expire(now time.Time) {
	for n, ok := l.due.First(); ok && !n.due.After(now); n, ok = l.due.First() {
		switch {
		case n.Hold > 0 && l.busy(&n.entry):
			n.Until = now.Add(n.Hold)
			l.touch(n)
			l.plan(n, n.Until.Add(-n.notice()))
		case n.Until.After(now):
			l.plan(n, n.Until)
		default:
			l.cool(n)
		}
	}
}

// cool makes n a key that is not hot. It is kept so that watchers are notified.
//
// REQUIRES: mu, and n is hot.
func (l *hotList) cool(n *node) {
	if n.place >= 0 {
		l.due.Remove(n.place)
	}
	n.hot, n.of = false, nil
	l.touch(n)
	n.cold = l.cold.PushBack(n)
	for l.cold.Len() > maxCold {
		l.evict()
	}
}

// maxCold bounds the keys that are kept although they are not hot.
const maxCold = 4096

// evict removes the key that is not hot for the longest time.
//
// REQUIRES: mu, and there is one.
func (l *hotList) evict() {
	n := l.cold.Remove(l.cold.Front()).(*node)
	l.order.Remove(n.order)
	delete(l.nodes, id{n.Rule, n.ID})
	l.bytes -= n.bytes()
	l.known = max(l.known, n.version())
}

// fit removes keys until there is memory for an entry of n bytes: those that are not hot
// first, and then those whose time is over first. It reports whether that was enough.
//
// REQUIRES: mu.
func (l *hotList) fit(n int64) bool {
	for l.bytes+n > l.budget-l.budget/queueShare {
		if l.cold.Len() > 0 {
			l.evict()
			continue
		}
		first, ok := l.due.First()
		if !ok {
			return false
		}
		l.stats.ListDropped++
		l.cool(first)
	}
	return true
}

// remove makes a key cold, and reports whether it was hot.
func (l *hotList) remove(rule, key string) bool {
	l.lock()
	defer l.unlock()
	n := l.nodes[id{rule, key}]
	if n == nil || !n.hot {
		return false
	}
	l.cool(n)
	return true
}

// changed notifies watchers that the value of a key changed, and reports whether the key is
// hot. If it is not, only watchers that may still consider it hot are notified.
func (l *hotList) changed(rule, key string) bool {
	l.lock()
	defer l.unlock()
	n := l.nodes[id{rule, key}]
	if n == nil {
		return false
	}
	l.version++
	n.Changed = l.version
	l.order.MoveToBack(n.order)
	return n.hot
}

// purge makes the keys cold whose rules are no longer in force.
func (l *hotList) purge() {
	l.lock()
	defer l.unlock()
	for _, n := range l.nodes {
		if n.hot && !l.inForce(&n.entry) {
			l.cool(n)
		}
	}
}

// all returns the keys that are hot under a rule, or under all if rule is "", in the order
// in which they became hot.
func (l *hotList) all(rule string) []entry {
	l.lock()
	var all []entry
	for _, n := range l.nodes {
		if n.hot && (rule == "" || rule == n.Rule) {
			all = append(all, n.entry)
		}
	}
	l.unlock()
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.joined, b.joined) })
	return all
}

// get returns a key that is hot.
func (l *hotList) get(rule, key string) (entry, bool) {
	l.lock()
	defer l.unlock()
	n := l.nodes[id{rule, key}]
	if n == nil || !n.hot {
		return entry{}, false
	}
	return n.entry, true
}

// statistics returns what the list has done since it was made, and how many keys are hot by rule.
func (l *hotList) statistics() (s api.HotStats, hot map[string]int) {
	l.lock()
	defer l.unlock()
	s, hot = l.stats, make(map[string]int)
	s.ListBytes = l.bytes
	for _, n := range l.nodes {
		if n.hot {
			hot[n.Rule]++
		}
	}
	return s, hot
}

// An entry is a key that is hot under a rule.
type entry struct {
	Rule string
	ID   string   // of the key under its rule
	Key  api.Key  // as watchers receive it
	of   *hotRule // or nil if it is not hot

	Since time.Time
	Until time.Time     // zero: always hot
	Hold  time.Duration // how much longer it stays hot if it is busy when Until is near
	Lo    uint64
	Hi    uint64 // 0: unknown, or none

	Hand    bool   // added by hand
	Changed uint64 // the version at which its value last changed, which the list sets

	joined uint64 // the version at which it became hot
}

// entryBytes is about what an entry takes besides its strings.
const entryBytes = 512

// bytes returns about how much memory e takes.
func (e *entry) bytes() int64 {
	n := entryBytes + len(e.ID)
	for _, v := range e.Key.Text {
		n += len(v)
	}
	for _, v := range e.Key.Base64 {
		n += len(v)
	}
	return int64(n)
}

// always reports whether e is hot without end.
func (e *entry) always() bool { return e.Until.IsZero() }

// notice returns how long before Until the list inspects whether e is busy: early enough
// for watchers to learn that it stays hot before its time is over.
func (e *entry) notice() time.Duration { return min(e.Hold/8, time.Second) }

// HotKey returns e in the form of the API, with the time that is left at now.
func (e *entry) HotKey(now time.Time) api.HotKey {
	k := api.HotKey{Rule: e.Rule, Key: e.Key, Since: e.Since.UTC(), Lo: e.Lo, Hi: e.Hi, Changed: e.Changed, Hand: e.Hand}
	if !e.always() {
		k.Until = e.Until.UTC()
		k.TTL = max(api.MillisOf(max(e.Until.Sub(now), 0)), 1)
	}
	return k
}

// ruleKey returns what e is a key of.
func (e *entry) ruleKey() api.RuleKey { return api.RuleKey{Rule: e.Rule, Key: e.Key} }

// A node is an entry in the list. It is kept for a while when the key is no longer hot, so
// that watchers receive the change.
type node struct {
	entry
	hot     bool
	touched uint64    // the version at which the entry last changed
	due     time.Time // when to inspect whether it stays hot
	place   int       // in hotList.due, or -1

	order *list.Element // among all nodes, by their last change
	cold  *list.Element // among those that are not hot, or nil
}

// version returns the version of the last change of n.
func (n *node) version() uint64 { return max(n.touched, n.Changed) }
