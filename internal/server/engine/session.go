package engine

import (
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A Session sends the requests of one connection to an [Engine]. It has the memory that
// requests need, so that decisions do not allocate. One goroutine at a time may use it. It
// does not keep strings that it is given.
//
// Methods that take a key take its values, in the order of the fields of the rule's or
// counter's key. One value stands for all of them, joined by [keys.Separator]. Errors are
// of *apierror.Error.
type Session struct {
	e      *Engine
	totals *totals
	stripe uint64
	event  *match.Event // or nil
	batch  *queue       // or nil
	key    []byte
	values []string
	// digests are of the event that was received last.
	digests intake.Digests
	edges   []hotkey.Edge
	n       uint64           // decisions
	id      []byte           // of the last decision
	asked   bool             // it was asked for one
	made    reservations.ID  // memory for it
	place   keptevents.Place // of the last event, or of the request of the next answer
	plain   []byte           // likewise
}

// totals counts decisions by outcome. An engine has several of them in different cache
// lines, so that cores seldom write to the same one.
type totals struct {
	allowed, refused, banned, unmatched, errors, outcomes atomic.Uint64
	_                                                     [16]byte
}

const totalStripes = 64

// Session returns a new Session.
func (e *Engine) Session() *Session {
	n := e.sessions.Add(1)
	return &Session{e: e, totals: &e.totals[n%totalStripes], stripe: n}
}

// Event returns an empty event for Check: the same one each time, unless that is queued.
func (s *Session) Event() *match.Event {
	if s.event == nil {
		s.event = s.e.spare.Get().(*match.Event)
	}
	s.event.Reset()
	return s.event
}

// Check judges one event, as QueueCheck and Decide do.
func (s *Session) Check(ev *match.Event, cost uint64, terms Terms) (ratelimit.Decision, error) {
	if err := s.QueueCheck(ev, cost, terms); err != nil {
		return ratelimit.Decision{Err: ratelimit.ErrKeyTooLong}, err
	}
	for d, err := range s.Decide() {
		return *d, err
	}
	return ratelimit.Decision{}, nil // not reached: one decision was queued
}

// CheckLogged judges an event of a log that is followed, at the time of the event, which must
// not be ahead of the clock. If a newer event of the key was already judged, the event is judged
// at that time. Bans and hot keys that have already ended are not published. The length of values
// is not limited, as in replay.
func (s *Session) CheckLogged(ev *match.Event) ratelimit.Decision {
	if db := s.e.rules.Load().geo; db != nil {
		db.Set(ev)
	}
	s.key = s.e.counters.Count(ev.Time, ev, s.key)
	d := s.e.limiter.TakeAt(ev.Time, ev, 1)
	s.checked(ev.Time, ev, 1, &d)
	return d
}

// checked counts the decision about ev.
func (s *Session) checked(t time.Time, ev *match.Event, cost uint64, d *ratelimit.Decision) {
	if ev.Part == match.Answer {
		s.answered(t, ev, cost)
		s.edges = s.e.hot.Count(t, ev, s.edges)
		return
	}
	s.count(d)
	if s.e.kept != nil {
		s.place = s.e.kept.Add(s.stripe, t, ev, cost)
	}
	r := s.e.rules.Load()
	switch {
	case !d.Allowed:
		s.e.crawlers.Refused(ev.Get(match.Client), ev.Get(match.Agent))
		s.countRefusedEvent(s.e.limiter.Set(), t, ev, d)
		return
	case d.Unmatched:
		s.e.unmatched.warn(s.e, &r.fields, ev)
	}
	s.edges = s.e.hot.Count(t, ev, s.edges) // refused events are not served, and must not fill the detectors
}

// Decisions returns how many events s has judged and counted so far.
func (s *Session) Decisions() uint64 { return s.n }

// count counts a decision for the totals.
func (s *Session) count(d *ratelimit.Decision) {
	s.n++
	switch {
	case d.Unmatched:
		s.totals.unmatched.Add(1)
	case d.Allowed:
		s.totals.allowed.Add(1)
	case d.BannedUntil.IsZero():
		s.totals.refused.Add(1)
	default:
		s.totals.banned.Add(1)
	}
}

// Failed counts a request that could not be answered with a decision.
func (s *Session) Failed() { s.totals.errors.Add(1) }

// taken counts the decision about a key under a rule.
func (s *Session) taken(rule string, d *ratelimit.Decision, values []string) {
	s.count(d)
	if s.e.kept != nil {
		s.e.kept.Miss(s.stripe)
	}
	if d.Allowed {
		return
	}
	if of, err := s.e.limiter.Set().Named(rule); err == nil {
		if i := keyvalue.ClientIndex(of.Key); i >= 0 && i < len(values) {
			s.e.crawlers.Refused(keyvalue.Client(of.Key.Fields()[i], []byte(values[i])), nil)
		}
		if s.key, err = of.Key.Join(s.key[:0], values...); err == nil {
			s.countRefused(s.e.Now(), of, d, nil)
		}
	}
}

// Refund gives back up to n of what a key has used under a rule, the oldest first,
// and returns how much.
func (s *Session) Refund(rule string, n uint64, key ...string) (uint64, error) {
	r, err := s.rule(rule, key, false)
	if err != nil {
		return 0, err
	}
	n, err = r.Refund(n, s.values...)
	return n, apierror.Of(err)
}

// Release ends n events of a key that are in progress under an in-flight rule, the oldest
// first, and returns how many there were to end. An event that is never released, because
// its client has crashed, ends after the rule's span. The error for a rule of another
// algorithm is of code BadArg.
func (s *Session) Release(rule string, n uint64, key ...string) (uint64, error) {
	r, err := s.e.ruleNamed(rule)
	if err == nil && r.Algorithm != ratelimit.InFlight {
		return 0, apierror.New(api.BadArg, "rule %q: algorithm is %s: must be in-flight; to give back what was counted, use REFUND", rule, r.Algorithm)
	}
	return s.Refund(rule, n, key...)
}

// Reset deletes what a key has used under a rule. Bans are kept.
func (s *Session) Reset(rule string, key ...string) error {
	r, err := s.rule(rule, key, true)
	if err != nil {
		return err
	}
	err = apierror.Of(r.Reset(s.values...))
	s.e.lives.Reset(s.e.Now(), rule)
	return err
}

// Throttle judges by a limit that is part of the request: count per period, and burst
// more at once, by GCRA; see [throttle.Limiter].
func (s *Session) Throttle(key string, burst, count uint64, period time.Duration, quantity uint64) (d ratelimit.Decision, err error) {
	if d, err = s.e.throttle.Take(key, burst, count, period, quantity); err != nil {
		return d, apierror.New(api.BadArg, "%v", err)
	}
	s.n++
	return d, nil
}

// Delete resets a key of Throttle, as if it had never been used. It reports whether the
// key was there.
func (s *Session) Delete(key string) bool { return s.e.throttle.Remove(key) }

// rule returns the limiter of one rule, and makes s.values the values of key, which may be listed.
func (s *Session) rule(name string, key []string, listed bool) (*ratelimit.RuleLimiter, error) {
	of, err := s.e.ruleNamed(name)
	if err != nil {
		return nil, err
	}
	r, err := s.e.limiter.Rule(name)
	if err != nil {
		return nil, apierror.Of(err)
	}
	s.values, err = s.e.split(s.values[:0], &of.Key, key, listed)
	return r, err
}

// split appends the values of a key of k to dst, with digests of hashed fields; if the key is listed, those that are digests stay.
// It does not check their number.
func (e *Engine) split(dst []string, k *match.Key, key []string, listed bool) (values []string, err error) {
	first := len(dst)
	if len(key) != 1 {
		dst = append(dst, key...)
	} else if dst, err = keys.Split(dst, k, key[0]); err != nil {
		return dst, err
	}
	if err := e.digest(k, dst[first:], listed); err != nil {
		return dst, err
	}
	return dst, keys.CheckValues(k, dst[first:])
}

// Add adds n, up to MaxCost, to a key of a counter, now. A counter that does not exist is created: it
// counts keys of one value over a second, a minute, an hour and a day.
func (s *Session) Add(name string, n uint64, key ...string) error {
	c, err := s.e.counters.Named(name)
	if err != nil && len(key) == 1 {
		c, err = s.e.counters.Create(name)
	}
	if err == nil {
		err = s.counterKey(c, key, false)
	}
	if err != nil {
		return err
	}
	return c.Add(s.key, n)
}

// Count returns the count of a key over a span that ends now, and its estimate divided by
// the span's seconds. Span 0 means the counter's longest.
func (s *Session) Count(name string, span time.Duration, key ...string) (count api.Count, perSecond float64, err error) {
	c, err := s.e.counters.Named(name)
	if err == nil {
		err = s.counterKey(c, key, true)
	}
	if err == nil {
		count, span, err = c.Sum(s.key, span)
	}
	if err != nil {
		return api.Count{}, 0, err
	}
	return count, float64(count.Estimate) / span.Seconds(), nil
}

// counterKey makes s.key the key of c that has these values.
func (s *Session) counterKey(c *counters.Counter, key []string, listed bool) (err error) {
	if s.values, err = s.e.split(s.values[:0], &c.Key, key, listed); err != nil {
		return err
	}
	if s.key, err = c.Key.Join(s.key[:0], s.values...); err != nil {
		return apierror.New(api.BadArg, "%v", err)
	}
	return nil
}
