// Package keptevents keeps the last events of a server in a bounded number of bytes, so that a
// draft of the rules can be tried on them.
package keptevents

import (
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
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
	chunks  uint64   // that were begun
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

// A Place is where a Queue keeps an event: the number of the chunk, and the offset in it. 0 is none.
type Place uint64

const placeBits = 16 // of the offset

// The kinds of what is kept: a byte before each event.
const (
	whole  byte = iota // a request that has no answer yet, or an event that has both
	answer             // an answer with the fields of its request
	joined             // an answer with the place of its request, a varint
)

// A chunk holds events and counts those that were not kept.
type chunk struct {
	number uint64
	data   []byte
	newest int64 // time of an event
	missed Missed
}

// Missed is how many decisions there were that kept events lack.
type Missed struct {
	Keys    int // about a key under one rule
	Long    int // about an event that is too long
	Costs   int // about an event of another cost than 1, which is kept as one of cost 1
	Answers int // to requests that are not kept any more
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

// Add keeps an event of a session in that stripe. It returns 0 if the event is too long.
func (k *Queue) Add(stripe uint64, t time.Time, ev *match.Event, cost uint64) Place {
	return k.add(stripe, t, ev, cost, []byte{whole})
}

// AddAnswer keeps the answer to a request that is kept at that place. If that is 0, ev has the fields of the request, too.
func (k *Queue) AddAnswer(stripe uint64, t time.Time, ev *match.Event, cost uint64, of Place) {
	if of == 0 {
		k.add(stripe, t, ev, cost, []byte{answer})
		return
	}
	var head [1 + binary.MaxVarintLen64]byte
	k.add(stripe, t, ev, cost, binary.AppendUvarint(append(head[:0], joined), uint64(of)))
}

// add keeps an event that begins with head.
func (k *Queue) add(stripe uint64, t time.Time, ev *match.Event, cost uint64, head []byte) Place {
	size, ok := eventlist.Size(ev)
	if !ok {
		size = maxEvent + 1
	}
	size += len(head)
	s := &k.stripes[stripe%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	c := k.chunk(s, size)
	if size > maxEvent {
		c.missed.Long++
		return 0
	}
	if cost != 1 {
		c.missed.Costs++
	}
	c.newest = max(c.newest, t.UnixNano())
	place := Place(c.number<<placeBits | uint64(len(c.data)))
	c.data = eventlist.Append(append(c.data, head...), t, ev)
	return place
}

// Miss counts a decision about a key, which has no event.
func (k *Queue) Miss(stripe uint64) {
	s := &k.stripes[stripe%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	k.chunk(s, 0).missed.Keys++
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
	k.chunks++
	c := &chunk{number: k.chunks}
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
	chunks []keptChunk
	found  map[uint64][]byte // the chunks, by their numbers
	of     eventlist.Reader  // the request of an answer
}

type keptChunk struct {
	number uint64
	data   []byte
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
		all.chunks = append(all.chunks, keptChunk{c.number, c.data})
		all.Missed.add(c.missed)
	}
	for i := range k.stripes {
		if c := k.stripes[i].chunk; c != nil {
			all.chunks = append(all.chunks, keptChunk{c.number, slices.Clone(c.data)})
			all.Missed.add(c.missed)
		}
	}
	return all
}

// All yields the events, not in order: requests, their answers with the fields of both, each at its time, and events that have both parts. An event is valid
// until the next. Missed.Answers is known when all were yielded.
func (a *Events) All() iter.Seq[*match.Event] {
	return func(yield func(*match.Event) bool) {
		var r eventlist.Reader
		a.Missed.Answers = 0
		for _, c := range a.chunks {
			for rest := c.data; len(rest) > 0; {
				kind, place := rest[0], Place(0)
				rest, place = readHead(rest)
				var ok bool
				if rest, ok = r.Next(rest); !ok {
					break // no chunk ends like this
				}
				// Some earlier events are no longer kept.
				if at := r.Event.Time.UnixNano(); a.from != 0 && at <= a.from {
					continue
				}
				if ev := a.event(kind, place, &r.Event); ev == nil {
					a.Missed.Answers++
				} else if !yield(ev) {
					return
				}
			}
		}
	}
}

// readHead reads what precedes an event: a byte or more.
func readHead(b []byte) (rest []byte, place Place) {
	if b[0] != joined {
		return b[1:], 0
	}
	at, n := binary.Uvarint(b[1:])
	return b[1+max(n, 0):], Place(at)
}

// event returns what is judged of ev, or nil for the answer to a request that is not kept any more.
func (a *Events) event(kind byte, of Place, ev *match.Event) *match.Event {
	switch kind {
	case answer:
		ev.Part = match.Answer
	case joined:
		return a.join(of, ev)
	default:
		if !eventfield.HasAnswer(ev) {
			ev.Part = match.Request
		}
	}
	return ev
}

// join returns an answer with the fields of its request, which win as they did when it was counted.
func (a *Events) join(of Place, answer *match.Event) *match.Event {
	if a.found == nil {
		a.found = make(map[uint64][]byte, len(a.chunks))
		for _, c := range a.chunks {
			a.found[c.number] = c.data
		}
	}
	data, offset := a.found[uint64(of>>placeBits)], int(of&(1<<placeBits-1))
	if offset >= len(data) {
		return nil
	}
	data, _ = readHead(data[offset:])
	if _, ok := a.of.Next(data); !ok {
		return nil
	}
	ev := &a.of.Event
	ev.Time, ev.Part = answer.Time, match.Answer
	for name, value := range answer.Fields() {
		if len(ev.GetNamed(name)) == 0 {
			ev.SetNamed(name, value)
		}
	}
	return ev
}

// Close lets the Queue use the memory of the events again.
func (a *Events) Close() {
	a.k.mu.Lock()
	defer a.k.mu.Unlock()
	a.k.reading--
}
