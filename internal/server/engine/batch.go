package engine

import (
	"iter"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// MaxBatch is how many queued decisions a store gets at a time. A listener that has queued
// so many should call [Session.Decide].
const MaxBatch = 256

// A batch is the decisions that a Session has queued.
type batch struct {
	queries   []ratelimit.Query
	events    []*match.Event // of the queries about events, in order
	values    []string       // of the keys of the others
	decisions []ratelimit.Decision
}

// Batches reports whether decisions that arrive together should be queued by QueueCheck and
// QueueTake, and be made by Decide: in one round trip, if limits are in a store that is
// reached by a network. Otherwise Check and Take cost less.
func (s *Session) Batches() bool { return s.e.config.Store != nil }

// Queued returns how many decisions are queued.
func (s *Session) Queued() int {
	if s.batch == nil {
		return 0
	}
	return len(s.batch.queries)
}

// QueueCheck queues what Check does with ev, or Peek, for the next Decide. ev is what Event
// has returned; the bytes of its fields must not change before. Counters count at once. An
// error is that of Check or Peek, and nothing is queued then.
func (s *Session) QueueCheck(ev *match.Event, cost uint64, peek bool) error {
	if err := s.checkLength(ev); err != nil {
		return err
	}
	if !peek {
		s.countEvent(s.e.limiter.Now(), ev)
	}
	b := s.openBatch()
	if ev == s.event { // the next Event is another
		b.events, s.event = append(b.events, ev), nil
	}
	b.queries = append(b.queries, ratelimit.Query{Event: ev, Cost: cost, Peek: peek})
	return nil
}

// QueueTake queues what Take does, or PeekRule, for the next Decide. The bytes of rule and
// key must not change before. An error is that of Take or PeekRule, and nothing is queued then.
func (s *Session) QueueTake(rule string, cost uint64, peek bool, key ...string) error {
	if _, err := s.rule(rule, key); err != nil {
		return err
	}
	b := s.openBatch()
	first := len(b.values)
	b.values = append(b.values, s.values...)
	b.queries = append(b.queries, ratelimit.Query{Rule: rule, Key: b.values[first:len(b.values):len(b.values)], Cost: cost, Peek: peek})
	return nil
}

func (s *Session) openBatch() *batch {
	if s.batch == nil {
		s.batch = s.e.batches.Get().(*batch)
	}
	return s.batch
}

// Decide makes the queued decisions, and yields them in order, each with the error of Take
// or nil. The Decision is valid until the next.
func (s *Session) Decide() iter.Seq2[*ratelimit.Decision, error] {
	return func(yield func(*ratelimit.Decision, error) bool) {
		b := s.batch
		if b == nil {
			return
		}
		s.batch = nil
		defer s.e.reuse(b)
		l := s.e.limiter
		b.decisions = l.TakeAll(b.queries, b.decisions[:0])
		now := l.Now()
		for i := range b.queries {
			d := &b.decisions[i]
			if !yield(d, s.decided(now, &b.queries[i], d)) {
				return
			}
		}
	}
}

// decided counts what came of a query.
func (s *Session) decided(now time.Time, q *ratelimit.Query, d *ratelimit.Decision) error {
	if q.Event != nil {
		if !q.Peek {
			s.checked(now, q.Event, q.Cost, d)
		}
		return nil
	}
	if err := keyError(d.Err); err != nil || q.Peek {
		return err
	}
	s.taken(q.Rule, d, q.Key)
	return nil
}

// reuse keeps the memory of b for another batch.
func (e *Engine) reuse(b *batch) {
	for _, ev := range b.events {
		ev.Reset()
		e.events.Put(ev)
	}
	clear(b.events)
	clear(b.queries)
	clear(b.values)
	b.events, b.queries, b.values = b.events[:0], b.queries[:0], b.values[:0]
	e.batches.Put(b)
}
