package enforce

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/counting/heap"
)

// bans is the networks that must be refused, as a state with versions: a watcher that has
// a version receives the changes since, each network once. It is safe for concurrent use.
type bans struct {
	max int              // entries
	now func() time.Time // by which bans end

	mu       sync.Mutex
	version  uint64 // of the newest change
	held     int
	networks map[netip.Prefix]*entry
	order    list.List         // of *entry, in the order of their versions
	due      heap.Heap[*entry] // the one that is due first in front
	watchers []*watcher
}

// An entry is one network, and the last change of it. If it has ended, it is kept for watchers.
type entry struct {
	change
	others []api.Ban     // of other rules, besides the one that ends last
	due    time.Time     // when it ends, or is deleted
	order  *list.Element // in bans.order
	place  int           // in bans.due
}

// held returns the bans that hold.
func (e *entry) held() []api.Ban {
	if e == nil || e.ended {
		return nil
	}
	return append([]api.Ban{e.ban}, e.others...)
}

// keepEnded is how long a network is kept after its bans ended. A watcher that reads less
// often may miss the end.
const keepEnded = time.Hour

// A watcher follows the changes.
type watcher struct {
	wake      chan struct{} // has a value after a change
	have      uint64        // the version that it has; 0 is none
	since     time.Time     // of the oldest change that it does not have; zero if it has all
	delayEnds bool          // the ends of bans that have run out may wait
	dropped   uint64        // ends that were deleted before it read them
}

// A change is the state of one network.
type change struct {
	network netip.Prefix
	id      uint64  // of the network, as long as it is kept
	ban     api.Ban // the one that ends last
	ended   bool    // nothing bans it
	at      time.Time
	version uint64
}

// ranOut reports whether the change is that the ban has run out.
func (c *change) ranOut() bool { return c.ended && !c.ban.Until.After(c.at) }

func newBans(limit int, now func() time.Time) *bans {
	b := &bans{max: limit, now: now, version: 1, networks: make(map[netip.Prefix]*entry)}
	b.order.Init()
	b.due = heap.New(func(x, y *entry) bool { return x.due.Before(y.due) }, func(e *entry, place int) { e.place = place })
	return b
}

// watch returns a watcher that has nothing.
func (b *bans) watch() *watcher {
	w := &watcher{wake: make(chan struct{}, 1), since: b.now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers = append(b.watchers, w)
	return w
}

// add adds a ban of network, and replaces a ban under the same rule. It reports false if
// there is no memory for another network.
func (b *bans) add(network netip.Prefix, ban api.Ban) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	others := slices.DeleteFunc(b.networks[network].held(), func(o api.Ban) bool { return o.Rule == ban.Rule })
	return b.set(network, append(others, ban))
}

// remove ends the ban of network under a rule.
func (b *bans) remove(network netip.Prefix, rule string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(network, slices.DeleteFunc(b.networks[network].held(), func(o api.Ban) bool { return o.Rule == rule }))
}

// replace makes all the bans that hold, and returns how many networks found no memory.
func (b *bans) replace(all map[netip.Prefix][]api.Ban) (full int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for network := range b.networks {
		if all[network] == nil {
			b.set(network, nil)
		}
	}
	for network, held := range all {
		if !b.set(network, held) {
			full++
		}
	}
	return full
}

// set makes held the bans of network. A new version begins if the network's end changes.
//
// REQUIRES: b.mu.
func (b *bans) set(network netip.Prefix, held []api.Ban) bool {
	slices.SortStableFunc(held, func(x, y api.Ban) int { return y.Until.Compare(x.Until) })
	e := b.networks[network]
	switch {
	case len(held) == 0:
		if e != nil && !e.ended {
			b.end(e)
		}
		return true
	case e == nil && len(b.networks) >= b.max:
		return false
	case e == nil:
		e = &entry{change: change{network: network, id: b.version + 1, ended: true}}
		e.order = b.order.PushBack(e)
		b.networks[network] = e
		b.due.Push(e)
	}
	same := !e.ended && e.due.Equal(held[0].Until)
	if e.ended {
		b.held++
	}
	e.ban, e.others, e.ended = held[0], append([]api.Ban(nil), held[1:]...), false
	if !same {
		b.touch(e, held[0].Until)
	}
	return true
}

// end ends the bans of e.
//
// REQUIRES: b.mu.
func (b *bans) end(e *entry) {
	b.held--
	e.others, e.ended = nil, true
	b.touch(e, b.now().Add(keepEnded))
}

// touch gives e a new version, and wakes the watchers.
//
// REQUIRES: b.mu.
func (b *bans) touch(e *entry, due time.Time) {
	e.due = due
	b.due.Fix(e.place)
	b.version++
	e.version, e.at = b.version, b.now()
	b.order.MoveToBack(e.order)
	for _, w := range b.watchers {
		if w.since.IsZero() && !(w.delayEnds && e.ranOut()) {
			w.since = b.now()
		}
		select {
		case w.wake <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}

// expire ends the bans that have run out, and deletes what has been kept long enough.
func (b *bans) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for e, ok := b.due.First(); ok && !e.due.After(now); e, ok = b.due.First() {
		if !e.ended {
			b.end(e) // its first ban ends last
		} else {
			b.delete(e)
		}
	}
}

// delete deletes e, which has ended.
//
// REQUIRES: b.mu.
func (b *bans) delete(e *entry) {
	b.due.Remove(e.place)
	b.order.Remove(e.order)
	delete(b.networks, e.network)
	for _, w := range b.watchers {
		if w.have < e.version && w.have > 0 {
			w.dropped++
		}
	}
}

// after returns the changes after version have, the oldest first and at most limit of them
// if that is not 0, and the version that a watcher has with them. Without a version, they
// are all networks that are banned.
func (b *bans) after(have uint64, limit int) (changes []change, version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.order.Back()
	for first != nil && first.Value.(*entry).version > have {
		first = first.Prev()
	}
	if first == nil {
		first = b.order.Front()
	} else {
		first = first.Next()
	}
	for at := first; at != nil; at = at.Next() {
		e := at.Value.(*entry)
		if e.ended && have == 0 {
			continue
		}
		if limit > 0 && len(changes) == limit {
			return changes, changes[limit-1].version
		}
		changes = append(changes, e.change)
	}
	return changes, b.version
}

// changed reports whether there is a change after version have; with soon, one that is not just the end of bans that
// have run out.
func (b *bans) changed(have uint64, soon bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := b.order.Back(); at != nil; at = at.Prev() {
		e := at.Value.(*entry)
		if e.version <= have {
			return false
		}
		if !soon || !e.ranOut() {
			return true
		}
	}
	return false
}

// covering returns the networks that are banned and have all of network in them.
func (b *bans) covering(network netip.Prefix) (changes []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for bits := network.Bits(); bits >= 0; bits-- {
		wider := netip.PrefixFrom(network.Addr(), bits).Masked()
		if e := b.networks[wider]; e != nil && !e.ended {
			changes = append(changes, e.change)
		}
	}
	return changes
}

// reached sets the version of w. It lacks the changes that have come meanwhile, since the first of
// them.
func (b *bans) reached(w *watcher, version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.have, w.since = version, time.Time{}
	for at := b.order.Back(); at != nil; at = at.Prev() {
		e := at.Value.(*entry)
		if e.version <= version {
			return
		}
		if !w.delayEnds || !e.ranOut() {
			w.since = e.at
		}
	}
}

// lag returns for how long w has lacked a change, and how many ends were deleted before it read them.
func (b *bans) lag(w *watcher) (lag time.Duration, dropped uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !w.since.IsZero() {
		lag = max(0, b.now().Sub(w.since))
	}
	return lag, w.dropped
}

// holds reports whether network is banned.
func (b *bans) holds(network netip.Prefix) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.networks[network]
	return e != nil && !e.ended
}

// count returns how many networks are banned.
func (b *bans) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
