package engine

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A Caller is one who asks an [Engine]: a connection, or a request. It keeps the
// memory that a question takes, so that no question allocates. It is used by one
// goroutine at a time. Strings that it is given are only read, and not kept.
type Caller struct {
	e      *Engine
	tally  *tally
	event  match.Event
	key    []byte
	values []string
	edges  []hotkey.Edge
	n      uint64 // decisions
}

// A tally counts decisions. There are several, so that cores that decide seldom
// meet in a cache line.
type tally struct {
	allowed, refused, banned, unmatched, errors atomic.Uint64
	_                                           [24]byte
}

const tallies = 64

// Caller returns a new Caller.
func (e *Engine) Caller() *Caller {
	return &Caller{e: e, tally: &e.tallies[e.callers.Add(1)%tallies]}
}

// Engine returns the engine that c asks.
func (c *Caller) Engine() *Engine { return c.e }

// Event returns an event without fields, to be filled in for Check. It is the same
// one each time.
func (c *Caller) Event() *match.Event {
	c.event.Reset()
	return &c.event
}

// Check counts ev now in the counters that are about it, judges it under all rules
// that are, and if it is allowed counts it under the hot rules: one decision. It is an error, and nothing is
// counted, if e judges by event time, or if a value of more than MaxKey bytes is in
// the key by which a rule that is not in shadow mode counts ev; the Decision then
// refuses, with the Err [ratelimit.ErrKeyTooLong]. A longer value that no such rule
// counts by is only matched.
func (c *Caller) Check(ev *match.Event, cost uint64) (ratelimit.Decision, error) {
	if err := c.checkKeys(ev); err != nil {
		return ratelimit.Decision{Err: ratelimit.ErrKeyTooLong}, err
	}
	if err := c.e.requireLive(); err != nil {
		return ratelimit.Decision{}, err
	}
	l := c.e.limiter.Load()
	return c.check(l, l.Now(), ev, cost), nil
}

// CheckAt is Check at the time of the event. It is an error unless Config.EventTime is set.
// The length of values is not limited, as in replay.
func (c *Caller) CheckAt(t time.Time, ev *match.Event, cost uint64) (ratelimit.Decision, error) {
	if err := c.e.advance(t.UnixMilli()); err != nil {
		return ratelimit.Decision{}, err
	}
	return c.check(c.e.limiter.Load(), t, ev, cost), nil
}

func (c *Caller) check(l *ratelimit.Limiter, t time.Time, ev *match.Event, cost uint64) ratelimit.Decision {
	b := c.e.book.Load()
	for _, counter := range b.counting {
		c.key = counter.add(ev, t, c.key)
	}
	d := l.TakeN(t, ev, cost)
	c.count(&d)
	if d.Allowed {
		c.detect(b, t, ev)
	}
	switch {
	case d.Unmatched:
		c.e.unmatched.warn(c.e, b, ev)
	case !d.Allowed:
		c.countRefusedEvent(l.Set(), t, ev, d.Rule)
	}
	return d
}

// detect counts an event that was allowed under the hot rules. Others are not served,
// so they make nothing hot; and memory is not for those who are refused to fill.
func (c *Caller) detect(b *book, t time.Time, ev *match.Event) {
	for _, h := range b.hot {
		if c.edges = h.detector.AddAt(t, ev, c.edges[:0]); len(c.edges) > 0 {
			c.e.heated(h, c.edges)
		}
	}
}

// Peek says what Check would decide, and changes nothing. An engine that judges by
// event time is asked as of [Engine.Now].
func (c *Caller) Peek(ev *match.Event, cost uint64) (ratelimit.Decision, error) {
	if err := c.checkKeys(ev); err != nil {
		return ratelimit.Decision{Err: ratelimit.ErrKeyTooLong}, err
	}
	return c.e.limiter.Load().PeekN(c.e.now(), ev, cost), nil
}

// checkKeys returns an error if a value is too long for the key that a rule takes
// from ev.
func (c *Caller) checkKeys(ev *match.Event) (err error) {
	if b := c.e.book.Load(); b.keys.long(ev) {
		c.key, err = b.keys.check(ev, c.key)
	}
	return err
}

// Decisions returns how many events c has judged and counted so far.
func (c *Caller) Decisions() uint64 { return c.n }

// count counts a decision for the totals.
func (c *Caller) count(d *ratelimit.Decision) {
	c.n++
	switch {
	case d.Unmatched:
		c.tally.unmatched.Add(1)
	case d.Allowed:
		c.tally.allowed.Add(1)
	case d.BannedUntil.IsZero():
		c.tally.refused.Add(1)
	default:
		c.tally.banned.Add(1)
	}
}

// Failed counts a question that could not be answered.
func (c *Caller) Failed() { c.tally.errors.Add(1) }

// Take judges an event of a key under the rule of that name alone, and counts it.
// Key is the values of the rule's key, joined by [KeySeparator]. Errors are of
// *Error.
func (c *Caller) Take(rule, key string, cost uint64) (ratelimit.Decision, error) {
	l := c.e.limiter.Load()
	r, err := c.rule(l, rule, key)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	if err := c.e.requireLive(); err != nil {
		return ratelimit.Decision{}, err
	}
	var d ratelimit.Decision
	if cost == 1 {
		d = r.Take(c.values...)
	} else {
		d = r.TakeN(l.Now(), cost, c.values...)
	}
	if err := keyError(d.Err); err != nil {
		return ratelimit.Decision{}, err
	}
	c.count(&d)
	if r, err := l.Set().Named(rule); err == nil && !d.Allowed && c.join(r.Key) == nil {
		c.countRefused(l.Now(), r)
	}
	return d, nil
}

// PeekRule says what Take would, and changes nothing. An engine that judges by event
// time is asked as of [Engine.Now].
func (c *Caller) PeekRule(rule, key string, cost uint64) (ratelimit.Decision, error) {
	r, err := c.rule(c.e.limiter.Load(), rule, key)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	d := r.PeekN(c.e.now(), cost, c.values...)
	if err := keyError(d.Err); err != nil {
		return ratelimit.Decision{}, err
	}
	return d, nil
}

// Refund gives back up to n of what a key has used under a rule, the oldest first,
// and returns how much.
func (c *Caller) Refund(rule, key string, n uint64) (uint64, error) {
	r, err := c.rule(c.e.limiter.Load(), rule, key)
	if err != nil {
		return 0, err
	}
	if err := c.e.requireLive(); err != nil {
		return 0, err
	}
	n, err = r.Refund(n, c.values...)
	return n, ruleError(err)
}

// Release ends n events of a key that are under way under an in-flight rule, the oldest
// first, and returns how many there were to end. An event whose end is never told, as its
// caller has crashed, ends after the rule's span. The error for a rule of another
// algorithm is of code BadArg.
func (c *Caller) Release(rule, key string, n uint64) (uint64, error) {
	r, err := c.e.limiter.Load().Set().Named(rule)
	if err == nil && r.Algorithm != ratelimit.InFlight {
		return 0, errorf(api.BadArg, "rule %q: algorithm is %s: must be in-flight; to give back what was counted, use REFUND", rule, r.Algorithm)
	}
	return c.Refund(rule, key, n)
}

// Reset deletes what a key has used under a rule. Bans go on.
func (c *Caller) Reset(rule, key string) error {
	r, err := c.rule(c.e.limiter.Load(), rule, key)
	if err != nil {
		return err
	}
	if err := c.e.requireLive(); err != nil {
		return err
	}
	return ruleError(r.Reset(c.values...))
}

// Throttle judges by the limit that the caller brings: count in period, and burst
// more at once, by GCRA; see [ratelimit.Throttle].
func (c *Caller) Throttle(key string, burst, count uint64, period time.Duration, quantity uint64) (ratelimit.ThrottleDecision, error) {
	if len(key) > MaxKey {
		return ratelimit.ThrottleDecision{}, errorf(api.BadArg, "key has %d bytes; allowed are %d", len(key), MaxKey)
	}
	if err := c.e.requireLive(); err != nil {
		return ratelimit.ThrottleDecision{}, err
	}
	d, err := c.e.throttle.Take(key, burst, count, period, quantity)
	if err != nil {
		return d, &Error{api.BadArg, err.Error()}
	}
	c.n++
	return d, nil
}

// Unthrottle resets a key of Throttle, as if it had never been used. It reports whether
// there was one.
func (c *Caller) Unthrottle(key string) (bool, error) {
	if err := c.e.requireLive(); err != nil {
		return false, err
	}
	return c.e.throttle.Forget(key), nil
}

// rule returns what judges under the rule of that name, and makes c.values those of
// key.
func (c *Caller) rule(l *ratelimit.Limiter, rule, key string) (*ratelimit.RuleLimiter, error) {
	r, err := l.Rule(rule)
	if err != nil {
		return nil, ruleError(err)
	}
	of, err := l.Set().Named(rule)
	if err != nil {
		return nil, ruleError(err)
	}
	return r, c.split(of.Key, key)
}

// keyError returns ruleError of what a decision says of its key, or nil.
func keyError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := ruleError(err).(*Error); ok {
		return e
	}
	return nil
}

// Add adds n to a key of a counter, now. A counter that is not there is made: it
// counts keys of one value over a second, a minute, an hour and a day.
func (c *Caller) Add(name, key string, n uint64) error {
	t, err := c.counterKey(name, key, true)
	if err != nil {
		return err
	}
	if n > MaxCost {
		return errorf(api.BadArg, "n is %d; allowed is 0 to %d", n, uint64(MaxCost))
	}
	if err := c.e.requireLive(); err != nil {
		return err
	}
	if !t.table.AddBytesAt(c.e.now(), c.key, n) {
		return errorf(api.Overload, "counter %q has no room for another key", name)
	}
	return nil
}

// Sum returns the bounds of a key's count over a span that ends now: the true count
// lies in [lo, hi], and lo is what [lately.Table.Sum] says. span 0 means the
// counter's longest.
func (c *Caller) Sum(name, key string, span time.Duration) (lo, hi uint64, err error) {
	t, err := c.counterKey(name, key, false)
	if err != nil {
		return 0, 0, err
	}
	if _, span, err = c.e.counterFor(name, span); err != nil {
		return 0, 0, err
	}
	lo, hi, err = t.table.BoundsLastAt(c.e.now(), view(c.key), span)
	if err != nil {
		return 0, 0, &Error{api.BadArg, err.Error()}
	}
	return lo, hi, nil
}

// Rate returns the estimated events per second of a key over a span that ends now.
func (c *Caller) Rate(name, key string, span time.Duration) (float64, error) {
	t, err := c.counterKey(name, key, false)
	if err != nil {
		return 0, err
	}
	if _, span, err = c.e.counterFor(name, span); err != nil {
		return 0, err
	}
	n, err := t.table.EstimateLastAt(c.e.now(), view(c.key), span)
	if err != nil {
		return 0, &Error{api.BadArg, err.Error()}
	}
	return float64(n) / span.Seconds(), nil
}

// counterKey makes c.key the key of that counter, and the counter if make says so.
func (c *Caller) counterKey(name, key string, make bool) (t *counter, err error) {
	if t = c.e.book.Load().counter(name); t == nil {
		if !make {
			return nil, c.e.noCounter(name)
		}
		if t, err = c.e.make(strings.Clone(name)); err != nil {
			return nil, err
		}
	}
	if err = c.split(t.Key, key); err == nil {
		err = c.join(t.Key)
	}
	return t, err
}
