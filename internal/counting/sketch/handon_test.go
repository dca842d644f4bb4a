package sketch_test

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
)

// A fullTable keeps the exact times of a few keys, and a Window those of the rest, like a store. Its capacity changes all
// the time.
type fullTable struct {
	w    *sketch.Window
	n    int
	span int64

	mu       sync.Mutex
	capacity int
	keys     map[uint64]*tableRecord
	floor    int64 // records have expired at this time; nothing is judged before it
}

type tableRecord struct {
	mu    sync.Mutex
	gone  bool
	times []int64
}

// find returns the record of key, locked, and the time to judge at. The record is nil if there is no memory for one.
func (c *fullTable) find(key uint64, t int64) (r *tableRecord, added bool, now int64) {
	for {
		c.mu.Lock()
		if r = c.keys[key]; r == nil && len(c.keys) < c.capacity {
			r, added = new(tableRecord), true
			c.keys[key] = r
			r.mu.Lock() // no key has it yet
		}
		now = max(t, c.floor)
		c.mu.Unlock()
		if r == nil || added {
			return r, added, now
		}
		if r.mu.Lock(); !r.gone {
			return r, false, now
		}
		r.mu.Unlock()
	}
}

// has reports whether key has a record.
func (c *fullTable) has(key uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[key] != nil
}

// expire removes keys without times in the window at t.
func (c *fullTable) expire(t int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor = max(c.floor, t)
	for key, r := range c.keys {
		if !r.mu.TryLock() {
			continue
		}
		if len(r.times) == 0 || r.times[len(r.times)-1] <= t-2*c.span {
			r.gone = true
			delete(c.keys, key)
		}
		r.mu.Unlock()
	}
}

// take allows key at t or not, in its record or in the window, and returns the time of its judgement.
func (c *fullTable) take(key uint64, t int64) (now int64, ok, inWindow bool) {
	for {
		r, added, now := c.find(key, t)
		if r != nil {
			defer r.mu.Unlock()
			if added {
				c.handOn(key, now, r)
			}
			now, ok := r.take(now, c.n, c.span)
			return now, ok, false
		}
		runtime.Gosched() // let others free some
		h := c.w.Lock(key)
		if c.has(key) {
			h.Unlock()
			continue
		}
		defer h.Unlock()
		if h.Used(now) >= uint64(c.n) {
			return now, false, true
		}
		h.Charge(now, 1)
		return now, true, true
	}
}

func (c *fullTable) handOn(key uint64, t int64, r *tableRecord) {
	h := c.w.Lock(key)
	defer h.Unlock()
	for at, count := range h.HandOn(t) {
		for range min(count, uint64(c.n)) {
			r.times = append(r.times, at)
		}
	}
}

func (r *tableRecord) take(t int64, n int, span int64) (now int64, ok bool) {
	if len(r.times) > 0 {
		t = max(t, r.times[len(r.times)-1])
	}
	for len(r.times) > 0 && r.times[0] <= t-span {
		r.times = r.times[1:]
	}
	if len(r.times) >= n {
		return t, false
	}
	r.times = append(r.times, t)
	return t, true
}

// Keys go to and fro between a table and the window beside it, from many
// goroutines, and none is ever allowed once too often.
func TestConcurrentCopyBesideATable(t *testing.T) {
	events := 20_000
	if os.Getenv("LATELY_LONG") != "" {
		events = 1_000_000
	}
	const n, keys, goroutines = 4, 40, 4
	span := int64(time.Minute)
	c := &fullTable{
		w: sketch.New(sketch.Config{N: n, Span: time.Duration(span), Counters: 4096}),
		n: n, span: span, capacity: keys / 4, keys: map[uint64]*tableRecord{},
	}
	var clock, inTable, inWindow atomic.Int64
	var mu sync.Mutex
	allowed := map[uint64][]int64{}
	var wg sync.WaitGroup
	for range goroutines {
		rnd := newRand(t)
		wg.Go(func() {
			for range events {
				key, at := rnd.Uint64N(keys), clock.Add(span/600)
				at, ok, sketched := c.take(key, at)
				if sketched {
					inWindow.Add(1)
				} else {
					inTable.Add(1)
				}
				if ok {
					mu.Lock()
					allowed[key] = append(allowed[key], at)
					mu.Unlock()
				}
				if rnd.IntN(500) == 0 { // everyone pauses, so that records go
					at = clock.Add(rnd.Int64N(2 * span))
				}
				c.expire(at)
			}
		})
	}
	wg.Wait()
	for key, times := range allowed {
		if at := over(times, n, span); at != 0 {
			t.Errorf("key %d: more than %d in the minute to %d", key, n, at)
		}
	}
	t.Logf("%d in the table, %d in the window", inTable.Load(), inWindow.Load())
	if inTable.Load() < int64(events)/10 || inWindow.Load() < int64(events)/10 {
		t.Error("the keys do not go to and fro")
	}
}
