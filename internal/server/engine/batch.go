package engine

import (
	"iter"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// MaxBatch is how many decisions should be queued at most before [Session.Decide].
const MaxBatch = 256

// A queue is the decisions that a Session has queued.
type queue struct {
	queries   []batch.Query
	asked     []idRequest      // of the queries that are asked for an id
	tickets   []*batch.Ticket  // memory for those of reservations
	held      int              // how many tickets are in use
	reports   []report         // of the queries that are outcomes by id
	events    []*match.Event   // of the queries about events, in order
	digests   []intake.Digests // of the hashed fields of the events, by the number of their query
	values    []string         // of the keys of the others
	decisions []ratelimit.Decision
}

// digestsOf returns the memory for the event of the i-th query.
func (b *queue) digestsOf(i int) *intake.Digests {
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
// Outcome without any of these, or with a value that no answer has, is an error. Its ID, if it has one, must be of this engine, or of one with the
// same secret: the error is of code BadID, and of code Expired if its time is over. An event whose id would be too long is an error, too.
func (s *Session) QueueCheck(ev *match.Event, cost uint64, terms Terms) (err error) {
	r := s.e.rules.Load()
	var of reservations.Request
	var reported report
	switch {
	case terms.Outcome:
		if of, reported, err = s.openOutcome(ev, &terms); err != nil {
			return err
		}
	case r.answers && !eventfield.HasAnswer(ev):
		ev.Part = match.Request
	}
	if r.geo != nil && !terms.ByID {
		r.geo.Set(ev)
	}
	b := s.openBatch()
	if in := r.hashing.intake(s.e.secret); in != nil {
		in.Event(ev, b.digestsOf(len(b.queries)))
	}
	fill(ev, &of, r) // after the intake: it has digests
	if s.key, err = r.fields.checkLength(ev, s.key); err == nil && terms.Report > 0 {
		err = r.fields.answers.checkSize(ev)
	}
	if err != nil {
		return err
	}
	if ev == s.event { // the next Event is another
		b.events, s.event = append(b.events, ev), nil
	}
	if terms.ID != "" && !terms.Peek {
		reported.query = len(b.queries)
		b.reports = append(b.reports, reported)
	}
	b.queries = append(b.queries, batch.Query{
		Event: ev, Cost: cost, Peek: terms.Peek, Ticket: b.ticket(terms.Hold),
		Partial: terms.ByID && of.Form != r.fields.answers.form, // decided under rules that need other fields
	})
	b.ask(terms.Hold, terms.Report)
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
	b.queries = append(b.queries, batch.Query{
		Rule: rule, Key: b.values[first:len(b.values):len(b.values)], Cost: cost, Limit: terms.Limit, Peek: terms.Peek, Ticket: b.ticket(terms.Hold),
	})
	b.ask(terms.Hold, 0)
	return nil
}

// ticket returns the ticket of a query that can be settled for so long, or nil.
func (b *queue) ticket(hold time.Duration) *batch.Ticket {
	if hold == 0 {
		return nil
	}
	if b.held == len(b.tickets) {
		b.tickets = append(b.tickets, new(batch.Ticket))
	}
	b.held++
	return b.tickets[b.held-1]
}

// ask notes that the query that was queued last is asked for an id, if it is.
func (b *queue) ask(hold, report time.Duration) {
	if hold > 0 || report > 0 {
		b.asked = append(b.asked, idRequest{len(b.queries) - 1, hold, report})
	}
}

func (s *Session) openBatch() *queue {
	if s.batch == nil {
		s.batch = s.e.batches.Get().(*queue)
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
		if len(b.events) > 0 || len(b.asked) > 0 {
			now = s.e.Now()
		}
		if len(b.reports) > 0 {
			s.once(now, b)
		}
		for i := range b.queries {
			if q := &b.queries[i]; q.Event != nil && !q.Peek {
				s.key = s.e.counters.Count(now, q.Event, s.key)
			}
		}
		b.decisions = s.e.limiter.Internal().TakeAll(b.queries, b.decisions[:0])
		asked, reports := b.asked, b.reports
		for i := range b.queries {
			q, d := &b.queries[i], &b.decisions[i]
			if s.place = 0; len(reports) > 0 && reports[0].query == i {
				s.place, reports = reports[0].place, reports[1:]
			}
			err := s.decided(now, q, d)
			if s.asked = len(asked) > 0 && asked[0].query == i; s.asked {
				s.identify(now, asked[0], q, d)
				asked = asked[1:]
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// decided counts what came of a query.
func (s *Session) decided(now time.Time, q *batch.Query, d *ratelimit.Decision) error {
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
func (e *Engine) reuse(b *queue) {
	for _, ev := range b.events {
		ev.Reset()
		e.spare.Put(ev)
	}
	clear(b.events)
	clear(b.queries)
	clear(b.values)
	clear(b.reports)
	b.events, b.queries, b.asked, b.held, b.reports, b.values = b.events[:0], b.queries[:0], b.asked[:0], 0, b.reports[:0], b.values[:0]
	e.batches.Put(b)
}
