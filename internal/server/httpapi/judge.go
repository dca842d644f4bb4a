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

const (
	// maxBatch is how many events a request may have.
	maxBatch = 1000

	// maxAt is the end of the year 2261, near the end of nanoseconds in 64 bits.
	maxAt = 9_214_646_400_000

	keySeparator = string(engine.KeySeparator)
)

// An item is one event to judge: under all rules, or by its key under one rule.
type item struct {
	ev   *match.Event // or nil: rule and key are set
	rule string
	key  string
	cost uint64
	at   *int64 // when it happened

	values int // of key; 0 if that was checked
}

// A form is a form of request bodies: one item by itself, or a list of items.
type form struct {
	list string // name of the list
	scan func(c *call) (item, bool)
}

var (
	eventForm = form{"events", (*call).scanEvent}
	takeForm  = form{"takes", (*call).scanTake}

	checkForms = []form{eventForm}
	takeForms  = []form{takeForm}
	peekForms  = []form{eventForm, takeForm}
)

// A judgeRequest is a decoded body of check, take or peek.
type judgeRequest struct {
	event  api.CheckItem
	take   api.TakeItem
	events []api.CheckItem
	takes  []api.TakeItem
}

// check answers POST /v1/check.
func check(c *call) error {
	if done, err := c.judgeScanned(checkForms, false); done {
		return err
	}
	var req api.CheckRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	return c.judge(&judgeRequest{event: req.CheckItem, events: req.Events}, false, false)
}

// take answers POST /v1/take.
func take(c *call) error {
	if done, err := c.judgeScanned(takeForms, false); done {
		return err
	}
	var req api.TakeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	return c.judge(&judgeRequest{take: req.TakeItem, takes: req.Takes}, true, false)
}

// peek answers POST /v1/peek.
func peek(c *call) error {
	if done, err := c.judgeScanned(peekForms, true); done {
		return err
	}
	var req api.PeekRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	event := api.CheckItem{Event: req.Event, Cost: req.Cost}
	return c.judge(&judgeRequest{event, req.TakeItem, req.Events, req.Takes}, req.Rule != "" || given(req.Key), true)
}

// judgeScanned answers a body of one of these forms that a scan can read, without a
// decoder. done is false for any other body. Nothing is judged before the whole body has
// been read.
func (c *call) judgeScanned(forms []form, peek bool) (done bool, err error) {
	for i := range forms {
		c.scan = scan{b: c.body}
		if it, ok := forms[i].scan(c); ok && c.scan.atEnd() {
			d, err := c.decide(&it, peek)
			if err != nil {
				return true, err
			}
			return true, c.decided(&d)
		}
	}
	for i := range forms {
		f := &forms[i]
		c.scan = scan{b: c.body}
		n, ok := c.scan.many(f.list, func() bool {
			_, ok := f.scan(c)
			return ok
		})
		if ok {
			return true, c.batch(n, func(int) (ratelimit.Decision, error) {
				c.scan.next()
				it, _ := f.scan(c)
				return c.decide(&it, peek)
			})
		}
	}
	return false, nil
}

// scanEvent reads an event, whose fields are views of the body.
func (c *call) scanEvent() (item, bool) {
	ev := c.caller.Event()
	cost, ok := c.scan.check(ev)
	return item{ev: ev, cost: cost}, ok
}

// scanTake reads a rule and a key, which are views of the body or of c.key. Only a list of
// texts has the separator in the key.
func (c *call) scanTake() (item, bool) {
	rule, key, cost, ok := c.scan.take(c)
	return item{rule: rule, key: key, cost: cost, values: strings.Count(key, keySeparator) + 1}, ok
}

// judge answers a decoded body. byKey says that a single item is a key under a rule.
func (c *call) judge(req *judgeRequest, byKey, peek bool) error {
	forms := 0
	for _, has := range []bool{req.events != nil, req.takes != nil, req.event.Event != nil || req.event.At != nil, req.take.Rule != "" || given(req.take.Key)} {
		if has {
			forms++
		}
	}
	lists := req.events != nil || req.takes != nil
	if forms > 1 || lists && (req.event.Cost != nil || req.take.Cost != nil) {
		return badArg("body: must be one of event, rule with key, events, and takes")
	}
	switch {
	case req.events != nil:
		return c.batch(len(req.events), func(i int) (ratelimit.Decision, error) { return c.decideEvent(&req.events[i], peek) })
	case req.takes != nil:
		return c.batch(len(req.takes), func(i int) (ratelimit.Decision, error) { return c.decideKey(&req.takes[i], peek) })
	}
	var d ratelimit.Decision
	var err error
	if byKey {
		d, err = c.decideKey(&req.take, peek)
	} else {
		d, err = c.decideEvent(&req.event, peek)
	}
	if err != nil {
		return err
	}
	return c.decided(&d)
}

// decideEvent decides about one event of a decoded body.
func (c *call) decideEvent(e *api.CheckItem, peek bool) (d ratelimit.Decision, err error) {
	it := item{at: e.At}
	if it.cost, err = costOf(e.Cost); err != nil {
		return d, err
	}
	if it.ev, err = c.fill(e.Event); err != nil {
		return d, err
	}
	return c.decide(&it, peek)
}

// decideKey decides about one key of a decoded body.
func (c *call) decideKey(t *api.TakeItem, peek bool) (d ratelimit.Decision, err error) {
	it := item{rule: t.Rule}
	if it.cost, err = costOf(t.Cost); err != nil {
		return d, err
	}
	if it.key, err = c.keyOf(t.Rule, t.Key); err != nil {
		return d, err
	}
	return c.decide(&it, peek)
}

// decide decides about one item, however it was read.
func (c *call) decide(it *item, peek bool) (d ratelimit.Decision, err error) {
	if err := checkCost("cost", it.cost); err != nil {
		return d, err
	}
	if it.ev == nil {
		if it.values > 1 {
			if err := c.s.Engine.CheckRuleKey(it.rule, it.values); err != nil {
				return d, err
			}
		}
		if peek {
			return c.caller.PeekRule(it.rule, it.key, it.cost)
		}
		return c.caller.Take(it.rule, it.key, it.cost)
	}
	if err := c.caller.Prepare(it.ev); err != nil {
		return d, err
	}
	switch {
	case it.at == nil && peek:
		return c.caller.Peek(it.ev, it.cost)
	case it.at == nil:
		return c.caller.Check(it.ev, it.cost)
	case peek:
		return d, badArg("at: must be absent for peek")
	case c.role < access.Admin:
		return d, &engine.Error{Code: api.NoPerm, Message: "at needs the role admin: event times are for replaying a log"}
	case *it.at < 0 || *it.at > maxAt:
		return d, badArg("at: %d: must be 0 to %d, milliseconds since 1970", *it.at, int64(maxAt))
	}
	return c.caller.CheckAt(time.UnixMilli(*it.at), it.ev, it.cost)
}

// decided answers with one decision.
func (c *call) decided(d *ratelimit.Decision) error {
	c.out = append(appendDecision(c.out[:0], d), '\n')
	return c.send(200, jsonType)
}

// batch answers with the decisions of several items.
func (c *call) batch(n int, judge func(i int) (ratelimit.Decision, error)) error {
	if n < 1 || n > maxBatch {
		return badArg("body: a list of %d entries: must be 1 to %d", n, maxBatch)
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

// fill returns an event of these fields.
func (c *call) fill(fields map[string]string) (*match.Event, error) {
	if fields == nil {
		return nil, badArg("event: missing: must be an object of fields, such as {\"client\":\"192.0.2.1\"}")
	}
	if len(fields) > maxFields {
		return nil, badArg("event: %d fields: must be at most %d", len(fields), maxFields)
	}
	ev := c.caller.Event()
	for name, value := range fields {
		if name == "" {
			return nil, badArg("event: a field without a name")
		}
		ev.SetNamedString(name, value)
	}
	return ev, nil
}

// keyOf returns the key of a request that names a rule. It holds until the next call.
func (c *call) keyOf(rule string, key api.Key) (string, error) {
	if rule == "" {
		return "", badArg("rule: missing: must be the name of a rule")
	}
	values, err := valuesOf(key)
	if err != nil {
		return "", err
	}
	if len(values) > 1 {
		if err := c.s.Engine.CheckRuleKey(rule, len(values)); err != nil {
			return "", err
		}
	}
	return c.joined(values)
}

// given reports whether a request has a key.
func given(k api.Key) bool { return k.Text != nil || k.Base64 != nil }
