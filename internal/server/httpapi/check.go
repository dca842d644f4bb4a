package httpapi

import (
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

const maxBatch = 1000

// decide answers POST /v1/check.
func decide(c *call) error {
	ev := c.caller.Event()
	s := scan{b: c.body}
	cost, ok := s.check(ev)
	if !ok || !s.atEnd() {
		return c.decideMany()
	}
	if err := checkCost("cost", cost); err != nil {
		return err
	}
	if err := c.caller.Prepare(ev); err != nil {
		return err
	}
	d, err := c.caller.Check(ev, cost)
	if err != nil {
		return err
	}
	return c.decided(&d)
}

// decided answers with one decision.
func (c *call) decided(d *ratelimit.Decision) error {
	c.out = append(appendDecision(c.out[:0], d), '\n')
	return c.send(200, jsonType)
}

// decideMany is decide for a list in the usual form. Nothing is judged before all of
// the body has been read.
func (c *call) decideMany() error {
	s := scan{b: c.body}
	n, ok := s.many("events", func() bool {
		_, ok := s.check(c.caller.Event())
		return ok
	})
	if !ok {
		return c.decideAny()
	}
	return c.batch(n, func(int) (d ratelimit.Decision, err error) {
		s.next()
		ev := c.caller.Event()
		cost, _ := s.check(ev)
		if err := checkCost("cost", cost); err != nil {
			return d, err
		}
		if err := c.caller.Prepare(ev); err != nil {
			return d, err
		}
		return c.caller.Check(ev, cost)
	})
}

// decideAny is decide for bodies of any form.
func (c *call) decideAny() error {
	var req api.CheckRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.Events == nil {
		d, err := c.check(&req.CheckItem, false)
		if err != nil {
			return err
		}
		return c.decided(&d)
	}
	if req.Event != nil || req.Cost != nil || req.At != nil {
		return badArg("there are both event, cost or at and events; allowed is one event or a list of them")
	}
	return c.batch(len(req.Events), func(i int) (ratelimit.Decision, error) { return c.check(&req.Events[i], false) })
}

// batch answers with the decisions of several.
func (c *call) batch(n int, judge func(i int) (ratelimit.Decision, error)) error {
	if n < 1 || n > maxBatch {
		return badArg("the list has %d entries; allowed are 1 to %d", n, maxBatch)
	}
	c.out = append(c.out[:0], `{"decisions":[`...)
	for i := range n {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		d, err := judge(i)
		if err != nil {
			c.caller.Failed()
			c.out = appendFailure(c.out, err)
			continue
		}
		c.out = appendDecision(c.out, &d)
	}
	c.out = append(c.out, "]}\n"...)
	return c.send(200, jsonType)
}

// check judges one event, or only looks.
func (c *call) check(item *api.CheckItem, peek bool) (d ratelimit.Decision, err error) {
	cost, err := costOf(item.Cost)
	if err != nil {
		return d, err
	}
	ev, err := c.fill(item.Event)
	if err != nil {
		return d, err
	}
	switch {
	case item.At == nil && peek:
		return c.caller.Peek(ev, cost)
	case item.At == nil:
		return c.caller.Check(ev, cost)
	case peek:
		return d, badArg("there is at; allowed where an event is counted only")
	case c.role < access.Admin:
		return d, &engine.Error{Code: api.NoPerm, Message: "at needs the role admin: event times are for replaying a log"}
	case *item.At < 0 || *item.At > maxAt:
		return d, badArg("at is %d; allowed is 0 to %d, milliseconds since 1970", *item.At, int64(maxAt))
	}
	return c.caller.CheckAt(time.UnixMilli(*item.At), ev, cost)
}

// maxAt is the end of the year 2261, near the end of nanoseconds in 64 bits.
const maxAt = 9_214_646_400_000

// fill makes an event of fields.
func (c *call) fill(fields map[string]string) (*match.Event, error) {
	if fields == nil {
		return nil, badArg("event is missing; allowed is an object of fields, such as {\"client\":\"192.0.2.1\"}")
	}
	if len(fields) > maxFields {
		return nil, badArg("event has %d fields; allowed are %d", len(fields), maxFields)
	}
	ev := c.caller.Event()
	for name, value := range fields {
		if name == "" {
			return nil, badArg("event has a field without a name")
		}
		ev.SetNamedString(name, value)
	}
	return ev, c.caller.Prepare(ev)
}

// take answers POST /v1/take.
func take(c *call) error {
	s := scan{b: c.body}
	rule, key, cost, ok := s.take(c)
	if !ok || !s.atEnd() {
		return c.takeMany()
	}
	d, err := c.takeScanned(rule, key, cost)
	if err != nil {
		return err
	}
	return c.decided(&d)
}

// takeScanned judges what a scan has read. Only a list of texts has the separator in
// the key.
func (c *call) takeScanned(rule, key string, cost uint64) (d ratelimit.Decision, err error) {
	if err := checkCost("cost", cost); err != nil {
		return d, err
	}
	if n := strings.Count(key, keySeparator); n > 0 {
		if err := c.s.engine.CheckRuleKey(rule, n+1); err != nil {
			return d, err
		}
	}
	return c.caller.Take(rule, key, cost)
}

const keySeparator = string(engine.KeySeparator)

// takeMany is to take what decideMany is to decide.
func (c *call) takeMany() error {
	s := scan{b: c.body}
	n, ok := s.many("takes", func() bool {
		_, _, _, ok := s.take(c)
		return ok
	})
	if !ok {
		return c.takeAny()
	}
	return c.batch(n, func(int) (ratelimit.Decision, error) {
		s.next()
		rule, key, cost, _ := s.take(c)
		return c.takeScanned(rule, key, cost)
	})
}

// takeAny is take for bodies of any form.
func (c *call) takeAny() error {
	var req api.TakeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.Takes == nil {
		d, err := c.take(&req.TakeItem, false)
		if err != nil {
			return err
		}
		return c.decided(&d)
	}
	if req.Rule != "" || given(req.Key) || req.Cost != nil {
		return badArg("there are both rule, key or cost and takes; allowed is one or a list of them")
	}
	return c.batch(len(req.Takes), func(i int) (ratelimit.Decision, error) { return c.take(&req.Takes[i], false) })
}

// take judges one event of a key, or only looks.
func (c *call) take(item *api.TakeItem, peek bool) (d ratelimit.Decision, err error) {
	cost, err := costOf(item.Cost)
	if err != nil {
		return d, err
	}
	key, err := c.keyOf(item.Rule, item.Key)
	if err != nil {
		return d, err
	}
	if peek {
		return c.caller.PeekRule(item.Rule, key, cost)
	}
	return c.caller.Take(item.Rule, key, cost)
}

// keyOf returns the key of a request that names a rule. It holds until the next call.
func (c *call) keyOf(rule string, key api.Key) (string, error) {
	if rule == "" {
		return "", badArg("rule is missing; allowed is the name of a rule")
	}
	values, err := valuesOf(key)
	if err != nil {
		return "", err
	}
	if len(values) > 1 {
		if err := c.s.engine.CheckRuleKey(rule, len(values)); err != nil {
			return "", err
		}
	}
	return c.joined(values)
}

// peek answers POST /v1/peek.
func peek(c *call) error {
	var req api.PeekRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	one := api.CheckItem{Event: req.Event, Cost: req.Cost}
	var d ratelimit.Decision
	var err error
	switch byRule := req.Rule != "" || given(req.Key); {
	case req.Events != nil && !byRule && req.Event == nil && req.Takes == nil && req.Cost == nil:
		return c.batch(len(req.Events), func(i int) (ratelimit.Decision, error) { return c.check(&req.Events[i], true) })
	case req.Takes != nil && !byRule && req.Event == nil && req.Events == nil && req.Cost == nil:
		return c.batch(len(req.Takes), func(i int) (ratelimit.Decision, error) { return c.take(&req.Takes[i], true) })
	case req.Events != nil || req.Takes != nil || byRule && req.Event != nil:
		return badArg("allowed is one of event, rule with key, events, and takes")
	case byRule:
		d, err = c.take(&req.TakeItem, true)
	default:
		d, err = c.check(&one, true)
	}
	if err != nil {
		return err
	}
	return c.decided(&d)
}

// given reports whether a request has a key.
func given(k api.Key) bool { return k.Text != nil || k.Base64 != nil }
