// Package keptevents keeps the last events of a server in a bounded number of bytes, so that a
// draft of the rules can be tried on them.
package keptevents

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/match"
)

const (
	chunkSize = 64 << 10 // bytes
	stripes   = 8

	// maxEvent bounds an event. A longer one is not kept.
	maxEvent = 8 << 10
)

// A Queue keeps the last events with all of their fields, in a bounded number of bytes, so
// that a draft of the rules can be tried on them. It is a queue of chunks: if there is no byte
// left, the oldest chunk is used again. Sessions append to chunks of their stripe. It is safe
// for concurrent use; Add does not allocate once all chunks are in use.
type Queue struct {
	stripes [stripes]stripe

	mu      sync.Mutex
	left    int      // chunks that were not made yet
	full    []*chunk // the oldest first
	reading int      // readers of full, whose chunks are not used again
	from    int64    // the time of the newest event that is not kept any more
}

// A stripe is the chunk that some of the sessions append to. It is locked before
// Queue.mu.
type stripe struct {
	mu    sync.Mutex
	chunk *chunk
	_     [48]byte // the next stripe is in another cache line
}

// A chunk holds events and counts those that were not kept.
type chunk struct {
	data   []byte
	newest int64 // time of an event
	missed Missed
}

// Missed is how many decisions there were that kept events lack.
type Missed struct {
	Keys    int // about a key under one rule
	Long    int // about an event that is too long
	Costs   int // about an event of another cost than 1, which is kept as one of cost 1
	Answers int // to requests: no decisions
}

func (m *Missed) add(x Missed) {
	m.Keys, m.Long, m.Costs, m.Answers = m.Keys+x.Keys, m.Long+x.Long, m.Costs+x.Costs, m.Answers+x.Answers
}

// New returns a Queue in that many bytes, and nil for a budget of 0.
func New(budget int64) *Queue {
	if budget == 0 {
		return nil
	}
	return &Queue{left: max(int(budget/chunkSize), stripes+1)}
}

// Add keeps an event of a session in that stripe.
func (k *Queue) Add(stripe uint64, t time.Time, ev *match.Event, cost uint64) {
	size, ok := eventlist.Size(ev)
	if !ok {
		size = maxEvent + 1
	}
	s := &k.stripes[stripe%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	c := k.chunk(s, size)
	if size > maxEvent {
		c.missed.Long++
		return
	}
	if cost != 1 {
		c.missed.Costs++
	}
	c.newest = max(c.newest, t.UnixNano())
	c.data = eventlist.Append(c.data, t, ev)
}

// Miss counts a decision about a key, which has no event.
func (k *Queue) Miss(stripe uint64) { k.miss(stripe, Missed{Keys: 1}) }

// MissAnswer counts an answer to a request.
func (k *Queue) MissAnswer(stripe uint64) { k.miss(stripe, Missed{Answers: 1}) }

func (k *Queue) miss(stripe uint64, what Missed) {
	s := &k.stripes[stripe%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	k.chunk(s, 0).missed.add(what)
}

// chunk returns the chunk of s, or a new one if that has not size bytes left.
//
// REQUIRES: s.mu.
func (k *Queue) chunk(s *stripe, size int) *chunk {
	if s.chunk == nil || size <= maxEvent && len(s.chunk.data)+size > chunkSize {
		s.chunk = k.next(s.chunk)
	}
	return s.chunk
}

// next takes over a chunk that is full, and returns an empty one.
func (k *Queue) next(full *chunk) *chunk {
	k.mu.Lock()
	defer k.mu.Unlock()
	if full != nil {
		k.full = append(k.full, full)
	}
	c := &chunk{}
	if k.left > 0 {
		k.left--
	} else {
		old := k.full[0] // there are more chunks than stripes
		k.full = slices.Delete(k.full, 0, 1)
		k.from = max(k.from, old.newest)
		if k.reading == 0 {
			c.data = old.data[:0]
		}
	}
	if c.data == nil {
		c.data = make([]byte, 0, chunkSize)
	}
	return c
}

// Events is the events of a [Queue] at one moment.
type Events struct {
	Since  time.Time // from then on, only the events of Missed are missing; zero: no event was dropped
	Missed Missed

	k      *Queue
	from   int64
	chunks [][]byte
}

// Events returns the events that k keeps. The caller must call Close.
func (k *Queue) Events() *Events {
	for i := range k.stripes {
		k.stripes[i].mu.Lock()
		defer k.stripes[i].mu.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading++
	all := &Events{k: k, from: k.from}
	if k.from > 0 {
		all.Since = time.Unix(0, k.from)
	}
	for _, c := range k.full {
		all.chunks = append(all.chunks, c.data)
		all.Missed.add(c.missed)
	}
	for i := range k.stripes {
		if c := k.stripes[i].chunk; c != nil {
			all.chunks = append(all.chunks, slices.Clone(c.data))
			all.Missed.add(c.missed)
		}
	}
	return all
}

// All yields the events, not in order. An event is valid until the next.
func (a *Events) All() iter.Seq[*match.Event] {
	return func(yield func(*match.Event) bool) {
		var r eventlist.Reader
		for _, data := range a.chunks {
			for rest, ok := r.Next(data); ok; rest, ok = r.Next(rest) {
				// Of the time before, a part of the events is not kept any more.
				if at := r.Event.Time.UnixNano(); (a.from == 0 || at > a.from) && !yield(&r.Event) {
					return
				}
			}
		}
	}
}

// Close lets the Queue use the memory of the events again.
func (a *Events) Close() {
	a.k.mu.Lock()
	defer a.k.mu.Unlock()
	a.k.reading--
}
