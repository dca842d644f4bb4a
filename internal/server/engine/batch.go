package engine

import (
	"iter"
	"time"

	"github.com/lately-go/lately/internal/intake"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// MaxBatch is how many decisions should be queued at most before [Session.Decide].
const MaxBatch = 256

// A batch is the decisions that a Session has queued.
type batch struct {
	queries   []ratelimit.Query
	holds     []time.Duration     // of the queries with a ticket
	tickets   []*ratelimit.Ticket // their memory
	events    []*match.Event      // of the queries about events, in order
	digests   []intake.Digests    // of the hashed fields of the events, by the number of their query
	values    []string            // of the keys of the others
	decisions []ratelimit.Decision
}

// digestsOf returns the memory for the event of the i-th query.
func (b *batch) digestsOf(i int) *intake.Digests {
	if missing := i + 1 - len(b.digests); missing > 0 {
		b.digests = append(b.digests, make([]intake.Digests, missing)...)
	}
	return &b.digests[i]
}

// Queued returns how many decisions are queued.
func (s *Session) Queued() int {
	if s.batch == nil {
		return 0
	}
	return len(s.batch.queries)
}

// QueueCheck queues an event for the next Decide, which counts it in the counters that match
// it and judges it under the rules that match it, as one decision. If it is allowed, the hot
// rules count it as well. ev is what Event has returned; the
// bytes of its fields must not change before Decide. It is an error, and nothing is queued, if
// a rule that is not in shadow mode counts ev by a value of more than keys.Max bytes.
//
// Rules that count answers judge an event without status, size or duration as a request that has no answer yet. An
// Outcome without any of these, or with a value that no answer has, is an error.
func (s *Session) QueueCheck(ev *match.Event, cost uint64, terms Terms) (err error) {
	r := s.e.rules.Load()
	switch {
	case terms.Outcome:
		if err := checkAnswer(ev); err != nil {
			return err
		}
		ev.Part = match.Answer
	case r.answers && !ev.HasAnswer():
		ev.Part = match.Request
	}
	if r.geo != nil {
		r.geo.Set(ev)
	}
	b := s.openBatch()
	if in := r.hashing.intake(s.e.secret); in != nil {
		in.Event(ev, b.digestsOf(len(b.queries)))
	}
	if s.key, err = r.fields.checkLength(ev, s.key); err != nil {
		return err
	}
	if ev == s.event { // the next Event is another
		b.events, s.event = append(b.events, ev), nil
	}
	b.queries = append(b.queries, ratelimit.Query{Event: ev, Cost: cost, Peek: terms.Peek, Ticket: b.ticket(terms.Hold)})
	return nil
}

// QueueTake queues an event of a key for the next Decide, which judges it under one rule. The bytes of rule and key must not change before Decide. If there
// is an error, nothing is queued.
func (s *Session) QueueTake(rule string, cost uint64, terms Terms, key ...string) error {
	r, err := s.e.ruleNamed(rule)
	if err != nil {
		return err
	}
	b := s.openBatch()
	first := len(b.values)
	if b.values, err = s.e.split(b.values, &r.Key, key, false); err != nil {
		return err
	}
	b.queries = append(b.queries, ratelimit.Query{
		Rule: rule, Key: b.values[first:len(b.values):len(b.values)], Cost: cost, Limit: terms.Limit, Peek: terms.Peek, Ticket: b.ticket(terms.Hold),
	})
	return nil
}

// ticket returns the ticket of a query that can be settled for so long, or nil.
func (b *batch) ticket(hold time.Duration) *ratelimit.Ticket {
	if hold == 0 {
		return nil
	}
	used := len(b.holds)
	if used == len(b.tickets) {
		b.tickets = append(b.tickets, new(ratelimit.Ticket))
	}
	b.holds = append(b.holds, hold)
	return b.tickets[used]
}

func (s *Session) openBatch() *batch {
	if s.batch == nil {
		s.batch = s.e.batches.Get().(*batch)
	}
	return s.batch
}

// Decide makes the queued decisions, and yields them in order, each with an error if the key
// was wrong. If limits are in a store that is reached by a network, they are made in one round
// trip. The Decision is valid until the next.
func (s *Session) Decide() iter.Seq2[*ratelimit.Decision, error] {
	return func(yield func(*ratelimit.Decision, error) bool) {
		b := s.batch
		if b == nil {
			return
		}
		s.batch = nil
		defer s.e.reuse(b)
		var now time.Time
		if len(b.events) > 0 || len(b.holds) > 0 {
			now = s.e.Now()
		}
		for i := range b.queries {
			if q := &b.queries[i]; q.Event != nil && !q.Peek {
				s.key = s.e.counters.Count(now, q.Event, s.key)
			}
		}
		b.decisions = s.e.limiter.TakeAll(b.queries, b.decisions[:0])
		s.asked = false
		for i, held := 0, 0; i < len(b.queries); i++ {
			d := &b.decisions[i]
			if len(b.holds) > 0 {
				if s.reserved(now, &b.queries[i], d, b.holds[min(held, len(b.holds)-1)]); s.asked {
					held++
				}
			}
			if !yield(d, s.decided(now, &b.queries[i], d)) {
				return
			}
		}
	}
}

// decideOne makes the one decision that is queued.
func (s *Session) decideOne() (ratelimit.Decision, error) {
	for d, err := range s.Decide() {
		return *d, err
	}
	return ratelimit.Decision{}, nil
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
		e.spare.Put(ev)
	}
	clear(b.events)
	clear(b.queries)
	clear(b.values)
	b.events, b.queries, b.holds, b.values = b.events[:0], b.queries[:0], b.holds[:0], b.values[:0]
	e.batches.Put(b)
}
