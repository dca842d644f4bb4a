package latelyredis

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/window"
)

const (
	maxCounterName = 1024

	// addShards is in how many parts a counter notes what was added.
	addShards = 16

	// maxOpen is how many keys are noted until the next entries are made. Adds of others are
	// counted in this process only.
	maxOpen = 1 << 18
)

// A Counter counts events per key in windows that processes share; see [Counters]. It is safe
// for concurrent use.
type Counter struct {
	of      *Counters
	name    string
	config  window.TableConfig
	windows []window.Window
	table   atomic.Pointer[window.Table]
	shards  [addShards]addShard
}

// An addShard notes the adds of some keys. Its lock is held while an add is counted in the table and
// noted, so that a table that takes the place of another one misses no add.
type addShard struct {
	mu       sync.Mutex
	slices   []slice // the last one is open until the time until
	until    int64
	deferred bool // adds are noted now, and counted by the next take
	_        [16]byte
}

// A slice is what was added in a part of the time in which no slot of any window ends.
type slice struct {
	from   int64 // when the part begins, in nanoseconds
	counts map[string]*uint64
}

// Add adds n to the count of a key now. It returns false, and counts nothing, if there is
// no memory for the key. It copies the key.
func (x *Counter) Add(key string, n uint64) bool {
	s := &x.shards[maphash.String(x.of.seed, key)%addShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	at := x.of.now()
	if !s.deferred && !x.table.Load().AddAt(time.Unix(0, at), key, n) {
		return false
	}
	if n == 0 || s.note(x, at, key, n) {
		return true
	}
	x.of.unshared.Add(1)
	return !s.deferred || x.table.Load().AddAt(time.Unix(0, at), key, n)
}

// note notes an add. It reports false if there is no memory.
//
// REQUIRES: s.mu.
func (s *addShard) note(x *Counter, at int64, key string, n uint64) bool {
	if last := len(s.slices) - 1; last < 0 || at < s.slices[last].from || at >= s.until {
		var from int64
		from, s.until = x.between(at)
		s.slices = append(s.slices, slice{from, make(map[string]*uint64)})
	}
	counts := s.slices[len(s.slices)-1].counts
	if count := counts[key]; count != nil {
		*count += min(n, math.MaxUint64-*count)
		return true
	}
	if x.of.open.Add(1) > maxOpen {
		x.of.open.Add(-1)
		return false
	}
	first := n // so that n is on the heap only for a new key
	counts[strings.Clone(key)] = &first
	return true
}

// between returns the last time until at, and the first after it, at which a slot of a window begins.
func (x *Counter) between(at int64) (from, until int64) {
	until = math.MaxInt64
	for _, w := range x.windows {
		slot := int64(w.Slot)
		begins := at / slot * slot
		from, until = max(from, begins), min(until, begins+slot)
	}
	return from, until
}

// Counts returns the counts of all processes, and the current time by the clock of Redis: pass it
// to the methods of the table. Do not keep the table, since another may replace it, and do not add
// to it: use Add.
func (x *Counter) Counts() (table *window.Table, now time.Time) {
	return x.table.Load(), time.Unix(0, x.of.now())
}

// newTable returns an empty table of x.
func (x *Counter) newTable() (*window.Table, error) {
	for i, w := range x.windows {
		if w.Slot == 0 {
			x.windows[i].Slot = window.Last(w.Span).Slot
		}
	}
	return window.NewTable(x.config, x.windows...)
}

// now returns the time of Redis as the node knows it, in nanoseconds.
func (c *Counters) now() int64 { return c.clock.server() * 1000 }

// take returns what was noted, which is counted by now. With deferred, what is noted from now on
// is counted by the next take.
func (x *Counter) take(deferred bool) (all []slice) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		if s.deferred {
			x.count(x.table.Load(), s.slices)
		}
		all = append(all, s.slices...)
		s.slices, s.deferred = nil, deferred
		s.mu.Unlock()
	}
	return all
}

// count counts slices in a table.
func (x *Counter) count(table *window.Table, all []slice) {
	for _, s := range all {
		for key, n := range s.counts {
			table.AddAt(time.Unix(0, s.from), key, *n)
		}
	}
}

// replace makes next the table of x, with what is noted.
func (x *Counter) replace(next *window.Table) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		defer s.mu.Unlock()
		x.count(next, s.slices)
	}
	x.table.Store(next)
}
