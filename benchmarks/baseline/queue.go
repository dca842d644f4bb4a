package baseline

import (
	"sync"
	"time"
)

// A Queue keeps the time of each event of the window, under one lock: the exact
// log that O3 compares its wheel with, and that O4 began with.
type Queue struct {
	mu    sync.Mutex
	span  int64
	times []int64 // a ring, its length a power of two
	head  int     // the oldest
	n     int
}

// NewQueue returns a window of slots*width.
func NewQueue(slots int, width time.Duration) *Queue {
	return &Queue{span: int64(slots) * int64(width), times: make([]int64, 16)}
}

// Add counts one event.
func (q *Queue) Add() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now().UnixNano()
	q.expire(now)
	if q.n == len(q.times) {
		q.grow()
	}
	q.times[(q.head+q.n)&(len(q.times)-1)] = now
	q.n++
}

// Sum returns how many events are in the window.
func (q *Queue) Sum() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire(time.Now().UnixNano())
	return uint64(q.n)
}

func (q *Queue) expire(now int64) {
	for q.n > 0 && q.times[q.head] <= now-q.span {
		q.head = (q.head + 1) & (len(q.times) - 1)
		q.n--
	}
}

func (q *Queue) grow() {
	times := make([]int64, 2*len(q.times))
	k := copy(times, q.times[q.head:])
	copy(times[k:], q.times[:q.head])
	q.times, q.head = times, 0
}
