package httpapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// maxBatch is how many events a request may have.
const maxBatch = 1000

// An item is one event to judge: under all rules, or by its key under one rule.
type item struct {
	ev   *match.Event // or nil: rule and key are set
	rule string
	key  []string
	cost uint64

	holds    bool // for_ms was given
	hold     api.Millis
	reports  bool // outcome_ms was given
	report   api.Millis
	byID     bool // id was given
	id       string
	limit    uint64 // for key, if it hasLimit
	hasLimit bool
}

// The names of lists of items, which also name the kinds of items.
const (
	eventList = "events"
	takeList  = "takes"
)

// kind returns the name of the list in which it may be.
func (it *item) kind() string {
	if it.ev != nil {
		return eventList
	}
	return takeList
}

// judge answers a body that is one item, or a list of items, of one of these kinds. forms
// describes them in errors. Nothing is judged before the whole body has been read.
func (c *call) judge(terms engine.Terms, forms string, kinds []string) error {
	c.scan = scan{b: c.body}
	if it, ok := c.scanItem(); ok && c.scan.atEnd() && slices.Contains(kinds, it.kind()) {
		return c.answerItem(it, nil, terms)
	}
	for _, kind := range kinds {
		c.scan = scan{b: c.body}
		n, ok := c.scan.many(kind, func() bool {
			it, ok := c.scanItem()
			return ok && it.kind() == kind
		})
		if ok {
			return c.answerItems(n, terms, func(int) (item, error) {
				c.scan.next()
				it, _ := c.scanItem()
				return it, nil
			})
		}
	}
	return c.judgeDecoded(terms, forms, kinds)
}

// scanItem reads an item, whose fields, rule and key are views of the body.
func (c *call) scanItem() (item, bool) {
	it, ok := c.scan.item(c.engine.Event(), c.key[:0])
	if it.key != nil {
		c.key = it.key
	}
	return it, ok
}

// A judgeRequest is a decoded body of any form.
type judgeRequest struct {
	judgeEvent
	Rule string `json:"rule"`
	api.Key
	Limit  *uint64           `json:"limit"`
	Events []judgeEvent      `json:"events"`
	Takes  []api.ReserveTake `json:"takes"`
}

// A judgeEvent is a decoded event of any form.
type judgeEvent struct {
	api.ReserveEvent
	ID *string `json:"id"`
}

// judgeDecoded answers a body that a scan does not accept.
func (c *call) judgeDecoded(terms engine.Terms, forms string, kinds []string) error {
	var req judgeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	event, take := req.Event != nil, req.Rule != "" || given(req.Key) || req.Limit != nil
	found, known := 0, true
	for _, member := range []struct {
		kind string
		has  bool
	}{{eventList, event}, {eventList, req.Events != nil}, {takeList, take}, {takeList, req.Takes != nil}} {
		if member.has {
			found++
			known = known && slices.Contains(kinds, member.kind)
		}
	}
	if found > 1 || !known || (req.Cost != nil || req.For != nil || req.Outcome != nil || req.ID != nil) && (req.Events != nil || req.Takes != nil) {
		return badArg("body: must be one of %s", forms)
	}
	switch {
	case req.Events != nil:
		return c.answerItems(len(req.Events), terms, func(i int) (item, error) { return c.eventItem(&req.Events[i]) })
	case req.Takes != nil:
		return c.answerItems(len(req.Takes), terms, func(i int) (item, error) { return c.reserveTake(&req.Takes[i]) })
	case take || kinds[0] == takeList:
		it, err := c.reserveTake(&api.ReserveTake{TakeItem: api.TakeItem{Rule: req.Rule, Key: req.Key, Cost: req.Cost, Limit: req.Limit}, For: req.For})
		return c.answerItem(it, err, terms)
	}
	it, err := c.eventItem(&req.judgeEvent)
	return c.answerItem(it, err, terms)
}

// eventItem returns the item of a decoded event.
func (c *call) eventItem(e *judgeEvent) (it item, err error) {
	it.holdFor(e.For)
	if it.reports = e.Outcome != nil; it.reports {
		it.report = *e.Outcome
	}
	if it.byID = e.ID != nil; it.byID {
		it.id = *e.ID
	}
	if it.cost, err = amount("cost", e.Cost); err != nil {
		return it, err
	}
	if e.Event == nil {
		return it, badArg("event: missing: must be an object of fields, such as {\"client\":\"192.0.2.1\"}")
	}
	if len(e.Event) > maxFields {
		return it, badArg("event: %d fields: must be at most %d", len(e.Event), maxFields)
	}
	it.ev = c.engine.Event()
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
	if it.rule, it.hasLimit = t.Rule, t.Limit != nil; it.hasLimit {
		it.limit = *t.Limit
	}
	it.key, err = ruleKey(t.Rule, t.Key)
	return it, err
}

// reserveTake returns the item of a decoded key for which there may be a reservation.
func (c *call) reserveTake(t *api.ReserveTake) (it item, err error) {
	it, err = c.takeItem(&t.TakeItem)
	it.holdFor(t.For)
	return it, err
}

func (it *item) holdFor(ms *api.Millis) {
	if ms != nil {
		it.holds, it.hold = true, *ms
	}
}

// termsFor returns the terms of an item.
func (it *item) termsFor(terms engine.Terms) (engine.Terms, error) {
	if it.hasLimit {
		if err := checkAmount("limit", it.limit); err != nil {
			return terms, err
		}
		terms.Limit = it.limit
	}
	switch {
	case it.holds && terms.Hold == 0:
		return terms, badArg("for_ms: unknown here: must be part of a request to /v1/reserve")
	case it.reports && (terms.Peek || terms.Outcome || it.ev == nil):
		return terms, badArg("outcome_ms: unknown here: must be beside an event in a request to /v1/check or /v1/reserve")
	case it.byID && !terms.Outcome:
		return terms, badArg("id: unknown here: must be part of a request to /v1/outcome")
	}
	terms.ByID, terms.ID = it.byID, it.id
	if it.holds {
		terms.Hold = it.hold.Duration()
		if err := checkHold("for_ms", int64(it.hold)); err != nil {
			return terms, err
		}
	}
	if it.reports {
		terms.Report = it.report.Duration()
		return terms, checkHold("outcome_ms", int64(it.report))
	}
	return terms, nil
}

// maxHold is for how many milliseconds an id is valid at most.
const maxHold = int64(reservations.MaxHold / time.Millisecond)

func checkHold(what string, ms int64) error {
	if ms < 1 || ms > maxHold {
		return badArg("%s: %d: must be 1 to %d", what, ms, maxHold)
	}
	return nil
}

// queue queues the decision about one item, or returns why it cannot be made.
func (c *call) queue(it *item, terms engine.Terms) error {
	if err := checkAmount("cost", it.cost); err != nil {
		return err
	}
	terms, err := it.termsFor(terms)
	if err != nil {
		return err
	}
	if it.ev == nil {
		return c.engine.QueueTake(it.rule, it.cost, terms, it.key...)
	}
	if err := c.engine.Prepare(it.ev); err != nil {
		return err
	}
	return c.engine.QueueCheck(it.ev, it.cost, terms)
}

// answerItem answers with the decision about one item, or with err.
func (c *call) answerItem(it item, err error, terms engine.Terms) error {
	if err == nil {
		err = c.queue(&it, terms)
	}
	if err != nil {
		return err
	}
	for d, err := range c.engine.Decide() {
		if err != nil {
			return err
		}
		c.out = append(c.appendDecision(c.out[:0], d), '\n')
	}
	return c.send(200, jsonType)
}

// answerItems answers with the decisions about several items.
func (c *call) answerItems(n int, terms engine.Terms, next func(i int) (item, error)) error {
	if n < 1 || n > maxBatch {
		return badArg("body: a list of %d entries: must be 1 to %d", n, maxBatch)
	}
	c.out = append(c.out[:0], `{"decisions":[`...)
	done, failed := 0, []failure(nil)
	for i := range n {
		if c.engine.Queued() == engine.MaxBatch {
			done, failed = c.settle(done, failed), nil
		}
		it, err := next(i)
		if err == nil {
			err = c.queue(&it, terms)
		}
		if err != nil {
			failed = append(failed, failure{i, err})
		}
	}
	c.settle(done, failed)
	c.out[len(c.out)-1] = ']' // for the last comma
	c.out = append(c.out, "}\n"...)
	return c.send(200, jsonType)
}

// A failure is why an item of a list was not queued.
type failure struct {
	item int
	err  error
}

// settle makes the decisions that are queued, and appends them and the failures among them, in
// order, from that item on. It returns the next item.
func (c *call) settle(item int, failed []failure) int {
	fail := func() {
		for ; len(failed) > 0 && failed[0].item == item; item++ {
			c.appendResult(nil, failed[0].err)
			failed = failed[1:]
		}
	}
	for d, err := range c.engine.Decide() {
		fail()
		c.appendResult(d, err)
		item++
	}
	fail()
	return item
}

// appendResult appends a decision, or why there is none, and a comma.
func (c *call) appendResult(d *ratelimit.Decision, err error) {
	if err != nil {
		c.engine.Failed()
		e := asAPI(err)
		b, _ := json.Marshal(api.Result{Error: &api.Failure{Code: e.Code, Detail: e.Detail}}) // strings have no error
		c.out = append(c.out, b...)
	} else {
		c.out = c.appendDecision(c.out, d)
	}
	c.out = append(c.out, ',')
}

// appendDecision appends d, which was just made, with its id.
func (c *call) appendDecision(dst []byte, d *ratelimit.Decision) []byte {
	dst = appendDecision(dst, d)
	if id, _ := c.engine.ID(); len(id) > 0 {
		dst = append(append(dst[:len(dst)-1], `,"id":"`...), id...) // it has letters, digits, - and _
		dst = append(dst, `"}`...)
	}
	return dst
}

// appendDecision appends d as JSON: what encoding/json makes of engine.DecisionOf, in a
// fraction of the time.
func appendDecision(dst []byte, decision *ratelimit.Decision) []byte {
	d := engine.DecisionOf(decision)
	dst = append(dst, `{"allowed":`...)
	dst = strconv.AppendBool(dst, d.Allowed)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendUint(dst, d.Limit, 10)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendUint(dst, d.Remaining, 10)
	dst = append(dst, `,"retry_after_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.RetryAfter), 10)
	dst = append(dst, `,"reset_after_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.ResetAfter), 10)
	dst = append(dst, `,"rule":`...)
	dst = appendText(dst, d.Rule)
	dst = append(dst, `,"banned_until_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.BannedUntil), 10)
	if d.Delay > 0 {
		dst = append(dst, `,"delay_ms":`...)
		dst = strconv.AppendInt(dst, int64(d.Delay), 10)
	}
	if d.Missing != "" {
		dst = appendText(append(dst, `,"missing":`...), d.Missing)
	}
	return append(dst, '}')
}
