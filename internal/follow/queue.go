package follow

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/lately-go/lately/match"
)

// A queue holds events that wait for older ones. It is a heap: the oldest is the first, and
// of several of a time the one that came first.
type queue struct {
	events []heldEvent
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

func (q *queue) Len() int           { return len(q.events) }
func (q *queue) Swap(i, j int)      { q.events[i], q.events[j] = q.events[j], q.events[i] }
func (q *queue) Less(i, j int) bool { return q.events[i].compare(&q.events[j]) < 0 }
func (q *queue) Push(x any) {
	e := x.(heldEvent)
	q.events, q.bytes = append(q.events, e), q.bytes+e.size()
}

func (q *queue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.bytes -= e.size()
	q.events[last] = heldEvent{}
	q.events = q.events[:last]
	return e
}

func (e *heldEvent) compare(o *heldEvent) int {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.N, o.N))
}

// full reports whether there are more events than may wait.
func (q *queue) full() bool { return len(q.events) > maxHeld || q.bytes > maxHeldBytes }

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
	heap.Push(q, e)
}

// size returns about how many bytes e takes.
func (e *heldEvent) size() int {
	n := 0
	for _, f := range e.Fields {
		n += len(f.Name) + len(f.Value) + 64
	}
	return n
}

// release passes on the events up to a time, the oldest first.
func (q *queue) release(upTo int64, ev *match.Event, judge func(*match.Event)) {
	for len(q.events) > 0 && q.events[0].At <= upTo {
		e := heap.Pop(q).(heldEvent)
		ev.Reset()
		ev.Time = time.Unix(0, e.At).UTC()
		for _, f := range e.Fields {
			ev.SetNamed(f.Name, f.Value)
		}
		judge(ev)
	}
}
