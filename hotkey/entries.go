package hotkey

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// entries are the entries of a Cache by key. A use of a key reads one shard. A change of the
// keys or their bytes takes mu, which is rare: a key that becomes hot, a load, an eviction.
type entries[V any] struct {
	shards [64]shard[V]
	budget int64 // 0 means no bound

	mu    sync.Mutex
	order list.List // of *entry[V], in the order in which they are inspected
	bytes int64
}

type shard[V any] struct {
	mu    sync.RWMutex
	keys  map[string]*entry[V] // written with entries.mu held as well
	stats cacheCounters
	_     [64]byte // the counters of two shards are not in one cache line
}

type cacheCounters struct{ hits, misses, stale, loads atomic.Uint64 }

// An entry is a hot key. After it was removed, only the calls that found it before
// use it.
type entry[V any] struct {
	key   string
	hash  uint64
	value atomic.Pointer[kept[V]]
	renew atomic.Int64 // when to renew the value
	until atomic.Int64 // when the key was last known to stop being hot
	used  atomic.Bool  // since it was inspected

	mu      sync.Mutex
	pending *load[V] // or nil
	changes uint64   // how often Set has stored a value

	// Under entries.mu.
	place *list.Element // nil if it was removed
	size  int64
}

// A kept value is what Set stored or a load returned.
type kept[V any] struct {
	value  V
	absent error // of a load; wraps ErrAbsent
	at     int64 // when the load began, so that the age is never too low
	size   int64
}

// A load is one call of Load for an entry.
type load[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// entryBytes is the memory of a key beside its own bytes and the bytes of its value.
const entryBytes = 160

func (s *entries[V]) init(budget int64) {
	s.budget = budget
	for i := range s.shards {
		s.shards[i].keys = make(map[string]*entry[V])
	}
}

func (s *entries[V]) shard(hash uint64) *shard[V] { return &s.shards[hash>>58] }

func (s *entries[V]) stats(hash uint64) *cacheCounters { return &s.shard(hash).stats }

// find returns the entry of key, or nil.
func (s *entries[V]) find(hash uint64, key string) *entry[V] {
	sh := s.shard(hash)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.keys[key]
}

// get returns the entry of key, which is hot until then, and makes one if there is
// none.
func (s *entries[V]) get(hash uint64, key string, now, until int64) *entry[V] {
	e := s.find(hash, key)
	if e == nil {
		e = s.add(hash, key, now, until)
	}
	if e.until.Load() != until {
		e.until.Store(until)
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e
}

func (s *entries[V]) add(hash uint64, key string, now, until int64) *entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, key); e != nil {
		return e
	}
	e := &entry[V]{key: key, hash: hash, size: entryBytes + int64(len(key))}
	e.until.Store(until)
	e.place = s.order.PushBack(e)
	s.bytes += e.size
	sh := s.shard(hash)
	sh.mu.Lock()
	sh.keys[key] = e
	sh.mu.Unlock()
	s.sweep(now)
	s.shrink(now)
	return e
}

// remove removes e, if it was not removed before.
//
// REQUIRES: s.mu.
func (s *entries[V]) remove(e *entry[V]) {
	if e.place == nil {
		return
	}
	s.order.Remove(e.place)
	e.place = nil
	s.bytes -= e.size
	sh := s.shard(e.hash)
	sh.mu.Lock()
	delete(sh.keys, e.key)
	sh.mu.Unlock()
}

func (s *entries[V]) delete(hash uint64, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, key); e != nil {
		s.remove(e)
	}
}

// sweep inspects two keys, and removes those that are not hot any more. It is called
// for each new key, so that not many such keys are kept.
//
// REQUIRES: s.mu.
func (s *entries[V]) sweep(now int64) {
	for range min(2, s.order.Len()) {
		e := s.order.Front().Value.(*entry[V])
		if now >= e.until.Load() {
			s.remove(e)
		} else {
			s.order.MoveToBack(e.place)
		}
	}
}

// shrink removes keys until the others fit the budget: those that are not hot any more
// or were not used since they were last inspected.
//
// REQUIRES: s.mu.
func (s *entries[V]) shrink(now int64) {
	for s.budget > 0 && s.bytes > s.budget {
		e := s.order.Front().Value.(*entry[V])
		if now < e.until.Load() && e.used.Swap(false) {
			s.order.MoveToBack(e.place)
		} else {
			s.remove(e)
		}
	}
}

// resize adapts the sizes to the new value of e.
func (s *entries[V]) resize(e *entry[V], now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.place == nil {
		return
	}
	size := entryBytes + int64(len(e.key)) + e.value.Load().size
	s.bytes += size - e.size
	e.size = size
	if s.budget > 0 && size > s.budget {
		s.remove(e) // it alone is too large
	}
	s.shrink(now)
}

// total returns the statistics of all shards.
func (s *entries[V]) total() (t CacheStats) {
	for i := range s.shards {
		c := &s.shards[i].stats
		t.Hits += c.hits.Load()
		t.Misses += c.misses.Load()
		t.Stale += c.stale.Load()
		t.Loads += c.loads.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Keys, t.Bytes = s.order.Len(), s.bytes
	return t
}

// set stores v as if loaded now; loads that are pending do not replace it.
func (e *entry[V]) set(c *Cache[V], v *kept[V]) {
	v.size = c.size(v)
	e.mu.Lock()
	e.changes++
	e.value.Store(v)
	e.renew.Store(c.renewal(v.at))
	e.mu.Unlock()
	c.entries.resize(e, v.at)
}

// load returns the pending load of e, and starts one if needed.
func (e *entry[V]) load(ctx context.Context, c *Cache[V]) *load[V] {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending == nil {
		e.pending = &load[V]{done: make(chan struct{})}
		c.entries.stats(e.hash).loads.Add(1)
		go e.run(context.WithoutCancel(ctx), c, e.pending, e.changes)
	}
	return e.pending
}

// run loads the value of e. changes is how often Set had changed it when the load began.
func (e *entry[V]) run(ctx context.Context, c *Cache[V], l *load[V], changes uint64) {
	v := &kept[V]{at: c.now()}
	l.err = errors.New("hotkey: load ended its goroutine") // unless it returns
	defer func() {
		keep := e.finish(c, v, l.err, changes)
		close(l.done)
		if keep {
			c.entries.resize(e, c.now())
		}
	}()
	l.value, l.err = c.call(ctx, e.key)
	switch v.value = l.value; {
	case l.err == nil:
		v.size = c.size(v)
	case errors.Is(l.err, ErrAbsent):
		v.absent = l.err
	}
}

// finish ends the pending load and stores v, unless the load failed or Set has stored
// a value since it began. It reports whether v was stored.
func (e *entry[V]) finish(c *Cache[V], v *kept[V], err error, changes uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = nil
	switch {
	case err != nil && v.absent == nil:
		e.renew.Store(c.retry(c.now()))
	case e.changes == changes:
		e.value.Store(v)
		e.renew.Store(c.renewal(v.at))
		return true
	}
	return false
}

// wait returns the result of l, or the error of ctx if that ends first.
func (l *load[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var zero V
		return zero, context.Cause(ctx)
	}
}
