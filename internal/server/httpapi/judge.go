package httpapi

import (
	"slices"
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
)

// An item is one event to judge: under all rules, or by its key under one rule.
type item struct {
	ev   *match.Event // or nil: rule and key are set
	rule string
	key  []string
	cost uint64
	at   *int64 // when it happened
}

// A form is a form of request bodies: one item, or a list of items.
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

// check answers POST /v1/check.
func check(c *call) error { return c.judge(checkForms, "event and events", false) }

// take answers POST /v1/take.
func take(c *call) error { return c.judge(takeForms, "rule with key, and takes", false) }

// peek answers POST /v1/peek.
func peek(c *call) error { return c.judge(peekForms, "event, rule with key, events, and takes", true) }

// judge answers a body of one of these forms. Nothing is judged before the whole body has
// been read.
func (c *call) judge(forms []form, names string, peek bool) error {
	for i := range forms {
		f := &forms[i]
		c.scan = scan{b: c.body}
		if it, ok := f.scan(c); ok && c.scan.atEnd() {
			return c.answerItem(it, nil, peek)
		}
		c.scan = scan{b: c.body}
		n, ok := c.scan.many(f.list, func() bool {
			_, ok := f.scan(c)
			return ok
		})
		if ok {
			return c.answerItems(n, peek, func(int) (item, error) {
				c.scan.next()
				it, _ := f.scan(c)
				return it, nil
			})
		}
	}
	return c.judgeDecoded(forms, names, peek)
}

// scanEvent reads an event, whose fields are views of the body.
func (c *call) scanEvent() (item, bool) {
	ev := c.engine.Event()
	cost, ok := c.scan.check(ev)
	return item{ev: ev, cost: cost}, ok
}

// scanTake reads a rule and a key, which are views of the body.
func (c *call) scanTake() (item, bool) {
	rule, key, cost, ok := c.scan.take(c.key[:0])
	c.key = key
	return item{rule: rule, key: key, cost: cost}, ok
}

// A judgeRequest is a decoded body of any form.
type judgeRequest struct {
	api.CheckItem
	Rule string `json:"rule"`
	api.Key
	Events []api.CheckItem `json:"events"`
	Takes  []api.TakeItem  `json:"takes"`
}

// judgeDecoded answers a body that a scan does not accept.
func (c *call) judgeDecoded(forms []form, names string, peek bool) error {
	var req judgeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	event, take := req.Event != nil || req.At != nil, req.Rule != "" || given(req.Key)
	found, known := 0, true
	for _, member := range []struct {
		list string
		has  bool
	}{{"events", event}, {"events", req.Events != nil}, {"takes", take}, {"takes", req.Takes != nil}} {
		if member.has {
			found++
			known = known && slices.ContainsFunc(forms, func(f form) bool { return f.list == member.list })
		}
	}
	if found > 1 || !known || req.Cost != nil && (req.Events != nil || req.Takes != nil) {
		return badArg("body: must be one of %s", names)
	}
	switch {
	case req.Events != nil:
		return c.answerItems(len(req.Events), peek, func(i int) (item, error) { return c.eventItem(&req.Events[i]) })
	case req.Takes != nil:
		return c.answerItems(len(req.Takes), peek, func(i int) (item, error) { return c.takeItem(&req.Takes[i]) })
	case take || forms[0].list == takeForm.list:
		it, err := c.takeItem(&api.TakeItem{Rule: req.Rule, Key: req.Key, Cost: req.Cost})
		return c.answerItem(it, err, peek)
	}
	it, err := c.eventItem(&req.CheckItem)
	return c.answerItem(it, err, peek)
}

// eventItem returns the item of a decoded event.
func (c *call) eventItem(e *api.CheckItem) (it item, err error) {
	if it.cost, err = amount("cost", e.Cost); err != nil {
		return it, err
	}
	if e.Event == nil {
		return it, badArg("event: missing: must be an object of fields, such as {\"client\":\"192.0.2.1\"}")
	}
	if len(e.Event) > maxFields {
		return it, badArg("event: %d fields: must be at most %d", len(e.Event), maxFields)
	}
	it.at, it.ev = e.At, c.engine.Event()
	for name, value := range e.Event {
		if name == "" {
			return it, badArg("event: a field without a name")
		}
		it.ev.SetNamedString(name, value)
	}
	return it, nil
}

// takeItem returns the item of a decoded key.
func (c *call) takeItem(t *api.TakeItem) (it item, err error) {
	if it.cost, err = amount("cost", t.Cost); err != nil {
		return it, err
	}
	it.rule = t.Rule
	it.key, err = ruleKey(t.Rule, t.Key)
	return it, err
}

// decide returns the decision about one item.
func (c *call) decide(it *item, peek bool) (d ratelimit.Decision, err error) {
	if err := checkAmount("cost", it.cost); err != nil {
		return d, err
	}
	if it.ev == nil {
		if peek {
			return c.engine.PeekRule(it.rule, it.cost, it.key...)
		}
		return c.engine.Take(it.rule, it.cost, it.key...)
	}
	if err := c.engine.Prepare(it.ev); err != nil {
		return d, err
	}
	switch {
	case it.at == nil && peek:
		return c.engine.Peek(it.ev, it.cost)
	case it.at == nil:
		return c.engine.Check(it.ev, it.cost)
	case peek:
		return d, badArg("at: must be absent for peek")
	case c.Role < access.Admin:
		return d, &engine.Error{Code: api.NoPerm, Message: "at: needs the role admin: event times are for replaying a log"}
	case *it.at < 0 || *it.at > maxAt:
		return d, badArg("at: %d: must be 0 to %d, milliseconds since 1970", *it.at, int64(maxAt))
	}
	return c.engine.CheckAt(time.UnixMilli(*it.at), it.ev, it.cost)
}

// answerItem answers with the decision about one item, or with err.
func (c *call) answerItem(it item, err error, peek bool) error {
	if err != nil {
		return err
	}
	d, err := c.decide(&it, peek)
	if err != nil {
		return err
	}
	c.out = append(appendDecision(c.out[:0], &d), '\n')
	return c.send(200, jsonType)
}

// answerItems answers with the decisions about several items.
func (c *call) answerItems(n int, peek bool, next func(i int) (item, error)) error {
	if n < 1 || n > maxBatch {
		return badArg("body: a list of %d entries: must be 1 to %d", n, maxBatch)
	}
	c.out = append(c.out[:0], `{"decisions":[`...)
	for i := range n {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		var d ratelimit.Decision
		it, err := next(i)
		if err == nil {
			d, err = c.decide(&it, peek)
		}
		if err != nil {
			c.engine.Failed()
			c.out = appendFailure(c.out, err)
			continue
		}
		c.out = appendDecision(c.out, &d)
	}
	c.out = append(c.out, "]}\n"...)
	return c.send(200, jsonType)
}
