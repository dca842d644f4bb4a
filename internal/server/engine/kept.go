package engine

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/match"
)

const (
	keptChunk   = 64 << 10 // bytes
	keptStripes = 8

	// maxKeptEvent bounds an event. A longer one is not kept.
	maxKeptEvent = 8 << 10
)

// keptEvents keeps the last events with all of their fields, in a bounded number of bytes, so
// that a draft of the rules can be tried on them. It is a queue of chunks: if there is no byte
// left, the oldest chunk is used again. Sessions append to chunks of their stripe. It is safe
// for concurrent use; add does not allocate once all chunks are in use.
type keptEvents struct {
	stripes [keptStripes]keptStripe

	mu      sync.Mutex
	left    int           // chunks that were not made yet
	full    []*eventChunk // the oldest first
	reading int           // readers of full, whose chunks are not used again
	from    int64         // the time of the newest event that is not kept any more
}

// A keptStripe is the chunk that some of the sessions append to. It is locked before
// keptEvents.mu.
type keptStripe struct {
	mu    sync.Mutex
	chunk *eventChunk
	_     [48]byte // the next stripe is in another cache line
}

// An eventChunk is some events, and what is not among them.
type eventChunk struct {
	data   []byte
	newest int64 // time of an event
	missed Missed
}

// Missed is how many decisions there were that kept events lack.
type Missed struct {
	Keys  int // about a key under one rule
	Long  int // about an event that is too long
	Costs int // about an event of another cost than 1, which is kept as one of cost 1
}

func (m *Missed) add(x Missed) {
	m.Keys, m.Long, m.Costs = m.Keys+x.Keys, m.Long+x.Long, m.Costs+x.Costs
}

// newKeptEvents returns nil, which keeps nothing, for a budget of 0.
func newKeptEvents(budget int64) *keptEvents {
	if budget == 0 {
		return nil
	}
	return &keptEvents{left: max(int(budget/keptChunk), keptStripes+1)}
}

// add keeps an event.
func (k *keptEvents) add(stripe uint64, t time.Time, ev *match.Event, cost uint64) {
	size, ok := eventlist.Size(ev)
	if !ok {
		size = maxKeptEvent + 1
	}
	s := &k.stripes[stripe%keptStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	c := k.chunk(s, size)
	if size > maxKeptEvent {
		c.missed.Long++
		return
	}
	if cost != 1 {
		c.missed.Costs++
	}
	c.newest = max(c.newest, t.UnixNano())
	c.data = eventlist.Append(c.data, t, ev)
}

// miss counts a decision about a key.
func (k *keptEvents) miss(stripe uint64) {
	s := &k.stripes[stripe%keptStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	k.chunk(s, 0).missed.Keys++
}

// chunk returns the chunk of s, or a new one if that has not size bytes left.
//
// REQUIRES: s.mu.
func (k *keptEvents) chunk(s *keptStripe, size int) *eventChunk {
	if s.chunk == nil || size <= maxKeptEvent && len(s.chunk.data)+size > keptChunk {
		s.chunk = k.next(s.chunk)
	}
	return s.chunk
}

// next takes over a chunk that is full, and returns an empty one.
func (k *keptEvents) next(full *eventChunk) *eventChunk {
	k.mu.Lock()
	defer k.mu.Unlock()
	if full != nil {
		k.full = append(k.full, full)
	}
	c := &eventChunk{}
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
		c.data = make([]byte, 0, keptChunk)
	}
	return c
}

// KeptEvents is the events that an [Engine] has kept.
type KeptEvents struct {
	Since  time.Time // from then on, only the events of Missed are missing
	Missed Missed

	k      *keptEvents
	from   int64
	chunks [][]byte
}

// KeptEvents returns the events that e keeps at one moment, and false if it keeps none by its
// Config. The caller must call Close.
func (e *Engine) KeptEvents() (*KeptEvents, bool) {
	k := e.kept
	if k == nil {
		return nil, false
	}
	for i := range k.stripes {
		k.stripes[i].mu.Lock()
		defer k.stripes[i].mu.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading++
	all := &KeptEvents{Since: e.started, k: k, from: k.from}
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
	return all, true
}

// All yields the events, not in order. An event is valid until the next.
func (a *KeptEvents) All() iter.Seq[*match.Event] {
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

// Close lets the engine use the memory of the events again.
func (a *KeptEvents) Close() {
	a.k.mu.Lock()
	defer a.k.mu.Unlock()
	a.k.reading--
}
