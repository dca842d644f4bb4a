package follow

import (
	"cmp"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/match"
)

// A queue holds events that wait for older ones, the oldest first; events of the same time
// are in the order of arrival.
type queue struct {
	events heap.Heap[heldEvent]
	bytes  int    // of these events
	n      uint64 // events so far
}

// A heldEvent is an event with a copy of its values.
type heldEvent struct {
	At     int64   `json:"at"` // nanoseconds since 1970
	N      uint64  `json:"n"`
	Fields []field `json:"fields"`
}

// A field is a field of an event. The value may be any bytes.
type field struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func newQueue() queue { return queue{events: heap.New(heldEvent.before, nil)} }

func (e heldEvent) before(o heldEvent) bool {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.N, o.N)) < 0
}

// len returns the number of events.
func (q *queue) len() int { return len(q.events.Items()) }

// full reports whether there are more events than may wait.
func (q *queue) full() bool { return q.len() > maxHeld || q.bytes > maxHeldBytes }

// add adds an event.
func (q *queue) add(e heldEvent) {
	q.events.Push(e)
	q.bytes += e.size()
}

// parts returns the events, in parts whose values have about recordSize bytes.
func (q *queue) parts() iter.Seq[[]heldEvent] {
	return func(yield func([]heldEvent) bool) {
		events := q.events.Items()
		begin, size := 0, 0
		for i := range events {
			if size += events[i].size(); size > recordSize && i > begin {
				if !yield(events[begin:i]) {
					return
				}
				begin, size = i, events[i].size()
			}
		}
		if begin < len(events) {
			yield(events[begin:])
		}
	}
}

// restore adds events of parts.
func (q *queue) restore(events []heldEvent) {
	for _, e := range events {
		q.n = max(q.n, e.N)
		q.add(e)
	}
}

// hold keeps a copy of ev.
func (q *queue) hold(ev *match.Event) {
	q.n++
	e := heldEvent{At: ev.Time.UnixNano(), N: q.n}
	size := 0
	n := 0
	for _, value := range ev.Fields() {
		n, size = n+1, size+len(value)
	}
	values := make([]byte, 0, size)
	e.Fields = make([]field, 0, n)
	for name, value := range ev.Fields() {
		begin := len(values)
		values = append(values, value...)
		e.Fields = append(e.Fields, field{name, values[begin:]})
	}
	q.add(e)
}

// size returns about how many bytes e takes.
func (e *heldEvent) size() int {
	n := 64
	for _, f := range e.Fields {
		n += len(f.Name) + len(f.Value) + 64
	}
	return n
}

// release passes on the events up to a time, the oldest first.
func (q *queue) release(upTo int64, ev *match.Event, judge func(*match.Event)) {
	for e, ok := q.events.First(); ok && e.At <= upTo; e, ok = q.events.First() {
		q.events.Remove(0)
		q.bytes -= e.size()
		ev.Reset()
		ev.Time = time.Unix(0, e.At).UTC()
		for _, f := range e.Fields {
			ev.SetNamed(f.Name, f.Value)
		}
		judge(ev)
	}
}
