package hotlist

import (
	"cmp"
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/heap"
)

// Config has the settings of a List. Budget and Now are required.
type Config struct {
	// Budget bounds the bytes of all entries.
	Budget int64

	// Now returns the current time.
	Now func() time.Time

	// InForce reports whether the rule of an entry is in force; nil means that all
	// are. Busy reports whether a key is over its threshold now, so that it stays hot
	// when its time is over; nil means that none is. Both are called with the lock of
	// the list held, and must not use the list.
	InForce, Busy func(*Entry) bool
}

// A List is the keys that are hot. It is safe for concurrent use. Make one with [New].
type List struct {
	config   Config
	instance string
	signal   chan struct{} // tells Run that there is something new
	wake     atomic.Pointer[chan struct{}]

	queue struct {
		mu      sync.Mutex
		entries []Entry
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
	stats     Stats // but for Hot and Bytes
}

// An id identifies a key.
type id struct{ rule, key string }

// Stats says what a List has done since it was made.
type Stats struct {
	Hot      map[string]int // keys that are hot now, by rule
	Bytes    int64          // of memory
	Watchers int            // now
	Dropped  uint64         // keys that were left out or removed early because the budget was spent
	Resets   uint64         // updates with the whole state that watchers were passed
	Updates  uint64         // other updates that watchers were passed
}

// New returns an empty List.
func New(c Config) *List {
	l := &List{config: c, signal: make(chan struct{}, 1), nodes: make(map[id]*node), updates: make(map[span]*Update), reset: make(map[string]*Update)}
	l.due = heap.New(func(a, b *node) bool { return a.due.Before(b.due) }, func(n *node, place int) { n.place = place })
	var random [8]byte
	rand.Read(random[:]) // never fails
	l.instance = hex.EncodeToString(random[:])
	l.wake.Store(new(make(chan struct{})))
	return l
}

// Add adds a key that became hot, or is hot for longer. It does not wait for anything
// that watchers do, unless so many keys were added at once that they take an eighth of
// the budget: then it puts them in order itself.
func (l *List) Add(e Entry) {
	q := &l.queue
	q.mu.Lock()
	q.entries = append(q.entries, e)
	q.bytes += e.bytes()
	full := q.bytes > l.config.Budget/queueShare
	q.mu.Unlock()
	if full {
		l.lock()
		l.unlock()
		return
	}
	l.tell()
}

// queueShare is which share of the budget is for entries that were just added.
const queueShare = 8

// tell tells Run that there is something new.
func (l *List) tell() {
	select {
	case l.signal <- struct{}{}:
	default: // it has not received the last one
	}
}

// lock locks l and brings it up to date: with the entries that were added, and without
// those whose time is over. It returns the current time.
func (l *List) lock() time.Time {
	l.mu.Lock()
	l.queue.mu.Lock()
	added := l.queue.entries
	l.queue.entries, l.queue.bytes = nil, 0
	l.queue.mu.Unlock()
	for i := range added {
		l.put(&added[i])
	}
	now := l.config.Now()
	l.expire(now)
	return now
}

// unlock unlocks l, and has watchers told if there is something new.
func (l *List) unlock() {
	fresh := l.version != l.published.Load()
	l.mu.Unlock()
	if fresh {
		l.tell()
	}
}

// put makes the key of e hot, or hot for longer.
//
// REQUIRES: mu.
func (l *List) put(e *Entry) {
	if l.config.InForce != nil && !l.config.InForce(e) {
		return
	}
	n := l.nodes[id{e.Rule, e.ID}]
	switch {
	case n == nil:
		if !l.fit(e.bytes()) {
			l.stats.Dropped++
			return
		}
		n = &node{Entry: *e, place: -1}
		n.order = l.order.PushBack(n)
		l.nodes[id{e.Rule, e.ID}] = n
		l.bytes += e.bytes()
	case !n.hot:
		l.bytes += e.bytes() - n.bytes() // it may be cut otherwise
		e.Changed = n.Changed
		n.Entry = *e
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

// touch makes the present change of n that of a new version.
//
// REQUIRES: mu.
func (l *List) touch(n *node) {
	l.version++
	n.touched = l.version
	l.order.MoveToBack(n.order)
}

// plan has n inspected at that time, or never if it is always hot.
//
// REQUIRES: mu.
func (l *List) plan(n *node, at time.Time) {
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
func (l *List) expire(now time.Time) {
	for n, ok := l.due.First(); ok && !n.due.After(now); n, ok = l.due.First() {
		switch {
		case n.Hold > 0 && l.config.Busy != nil && l.config.Busy(&n.Entry):
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
func (l *List) cool(n *node) {
	if n.place >= 0 {
		l.due.Remove(n.place)
	}
	n.hot, n.Of = false, nil
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
func (l *List) evict() {
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
func (l *List) fit(n int64) bool {
	for l.bytes+n > l.config.Budget-l.config.Budget/queueShare {
		if l.cold.Len() > 0 {
			l.evict()
			continue
		}
		first, ok := l.due.First()
		if !ok {
			return false
		}
		l.stats.Dropped++
		l.cool(first)
	}
	return true
}

// Remove makes a key cold, and reports whether it was hot.
func (l *List) Remove(rule, key string) bool {
	l.lock()
	defer l.unlock()
	n := l.nodes[id{rule, key}]
	if n == nil || !n.hot {
		return false
	}
	l.cool(n)
	return true
}

// Changed tells watchers that the value of a key changed, and reports whether the key is
// hot. If it is not, only watchers that may still consider it hot are notified.
func (l *List) Changed(rule, key string) bool {
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

// Purge makes the keys cold whose rules are no longer in force.
func (l *List) Purge() {
	l.lock()
	defer l.unlock()
	for _, n := range l.nodes {
		if n.hot && l.config.InForce != nil && !l.config.InForce(&n.Entry) {
			l.cool(n)
		}
	}
}

// All returns the keys that are hot under a rule, or under all if rule is "", in the order
// in which they became hot.
func (l *List) All(rule string) []Entry {
	l.lock()
	var all []Entry
	for _, n := range l.nodes {
		if n.hot && (rule == "" || rule == n.Rule) {
			all = append(all, n.Entry)
		}
	}
	l.unlock()
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.joined, b.joined) })
	return all
}

// Get returns a key that is hot.
func (l *List) Get(rule, key string) (Entry, bool) {
	l.lock()
	defer l.unlock()
	n := l.nodes[id{rule, key}]
	if n == nil || !n.hot {
		return Entry{}, false
	}
	return n.Entry, true
}

// Stats returns the statistics of l.
func (l *List) Stats() Stats {
	l.lock()
	defer l.unlock()
	s := l.stats
	s.Hot, s.Bytes = make(map[string]int), l.bytes
	for _, n := range l.nodes {
		if n.hot {
			s.Hot[n.Rule]++
		}
	}
	return s
}
