package httpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// maxBatch is how many events a request may have. Longer lists are errors of checkShape.
const maxBatch = 1000

var errNoEntries = badArg("body: a list of 0 entries: must be 1 to %d", maxBatch)

// An item is one event to judge: under all rules, or by its key under one rule. Its Terms are those that the body gives: for_ms,
// outcome_ms, id and limit. Numbers that are 0 were not given.
type item struct {
	ev   *match.Event // or nil: rule and key are set
	rule string
	key  []string
	cost uint64
	engine.Terms
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

// fits reports whether it may be in a request on these terms; judgeItem.misplaced has the error.
func (it *item) fits(terms *engine.Terms) bool {
	return (it.Hold == 0 || terms.Hold > 0) && (it.Report == 0 || it.ev != nil && !terms.Peek && !terms.Outcome) && (!it.ByID || terms.Outcome)
}

// judge answers a body that is one item, or a list of items, of one of these kinds. forms
// describes them in errors. Nothing is judged before the whole body has been read.
func (c *call) judge(terms engine.Terms, forms string, kinds []string) error {
	c.scan = scan{b: c.body}
	if it, ok := c.scanItem(); ok && c.scan.atEnd() && slices.Contains(kinds, it.kind()) && it.fits(&terms) {
		return c.answerItem(it, nil, terms)
	}
	for _, kind := range kinds {
		c.scan = scan{b: c.body}
		n, ok := c.scan.many(kind, func() bool {
			it, ok := c.scanItem()
			return ok && it.kind() == kind && it.fits(&terms)
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
	it, ok := c.scan.item(c.session.Event(), c.key[:0])
	if it.key != nil {
		c.key = it.key
	}
	return it, ok
}

// A judgeRequest is a decoded body of any form.
type judgeRequest struct {
	judgeItem
	Events []judgeItem `json:"events"`
	Takes  []judgeItem `json:"takes"`
}

// A judgeItem is a decoded item of any form.
type judgeItem struct {
	Event map[string]string `json:"event"`
	Rule  string            `json:"rule"`
	api.Key
	Cost    *uint64     `json:"cost"`
	Limit   *uint64     `json:"limit"`
	For     *api.Millis `json:"for_ms"`
	Outcome *api.Millis `json:"outcome_ms"`
	ID      *string     `json:"id"`
}

// isTake reports whether r has a member that only items with a key have.
func (r *judgeItem) isTake() bool { return r.Rule != "" || given(r.Key) || r.Limit != nil }

// judgeDecoded answers a body that a scan does not accept.
func (c *call) judgeDecoded(terms engine.Terms, forms string, kinds []string) error {
	var req judgeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	list, kind := req.Events, eventList
	switch {
	case req.Takes != nil:
		list, kind = req.Takes, takeList
	case list == nil && req.Event == nil && (req.isTake() || kinds[0] == takeList):
		kind = takeList
	}
	several := req.Events != nil && req.Takes != nil || list != nil && !reflect.ValueOf(req.judgeItem).IsZero()
	if several || req.Event != nil && req.isTake() || !slices.Contains(kinds, kind) {
		return badArg("body: must be one of %s", forms)
	}
	if list == nil {
		if wrong := req.misplaced(kind, &terms); wrong != "" {
			return badArg("%s", wrong)
		}
		it, err := c.decoded(&req.judgeItem, kind)
		return c.answerItem(it, err, terms)
	}
	for i := range list {
		if wrong := list[i].misplaced(kind, &terms); wrong != "" {
			return badArg("%s: entry %d: %s", kind, i+1, wrong)
		}
	}
	return c.answerItems(len(list), terms, func(i int) (item, error) { return c.decoded(&list[i], kind) })
}

// decoded returns the item of r, which must be of that kind.
func (c *call) decoded(r *judgeItem, kind string) (it item, err error) {
	if it.cost, err = amount("cost", r.Cost); err != nil {
		return it, err
	}
	if it.Hold, err = holdOf("for_ms", r.For); err != nil {
		return it, err
	}
	if it.Report, err = holdOf("outcome_ms", r.Outcome); err != nil {
		return it, err
	}
	if it.ByID = r.ID != nil; it.ByID {
		it.ID = *r.ID
	}
	if kind == eventList {
		return it, c.decodedEvent(&it, r)
	}
	if r.Limit != nil {
		if it.Limit, err = amount("limit", r.Limit); err != nil {
			return it, err
		}
	}
	it.rule = r.Rule
	it.key, err = ruleKey(r.Rule, r.Key)
	return it, err
}

// decodedEvent sets the event of it.
func (c *call) decodedEvent(it *item, r *judgeItem) error {
	if r.Event == nil {
		return badArg("event: missing: must be an object of fields, such as {\"client\":\"192.0.2.1\"}")
	}
	it.ev = c.session.Event()
	for _, name := range slices.Sorted(maps.Keys(r.Event)) { // so that the error about unknown fields names the same each time
		if name == "" {
			return badArg("event: a field without a name")
		}
		it.ev.SetNamedString(name, r.Event[name])
	}
	return nil
}

// misplaced returns what is wrong with a member that items of that kind do not have on these terms, or "". Like a member
// that no item has, it is an error of the whole request.
func (r *judgeItem) misplaced(kind string, terms *engine.Terms) string {
	switch {
	case kind == takeList && r.Event != nil:
		return "event: unknown here: must be rule with key"
	case kind == eventList && r.isTake():
		return "rule, key and limit: unknown here: must be event"
	case r.For != nil && terms.Hold == 0:
		return "for_ms: unknown here: must be part of a request to /v1/reserve"
	case r.Outcome != nil && (kind == takeList || terms.Peek || terms.Outcome):
		return "outcome_ms: unknown here: must be beside an event in a request to /v1/check or /v1/reserve"
	case r.ID != nil && !terms.Outcome:
		return "id: unknown here: must be part of a request to /v1/outcome"
	}
	return ""
}

// maxHold is for how many milliseconds an id is valid at most.
const maxHold = uint64(reservations.MaxHold / time.Millisecond)

// holdOf returns for how long an id is to be valid, and 0 for nil.
func holdOf(what string, ms *api.Millis) (time.Duration, error) {
	if ms == nil {
		return 0, nil
	}
	if *ms < 1 || uint64(*ms) > maxHold {
		return 0, badArg("%s: %d: must be 1 to %d", what, *ms, maxHold)
	}
	return ms.Duration(), nil
}

// queue queues the decision about one item on the terms of the route and its own, or returns why it cannot be made.
func (c *call) queue(it *item, terms engine.Terms) error {
	it.Peek, it.Outcome, it.Hold = terms.Peek, terms.Outcome, cmp.Or(it.Hold, terms.Hold)
	if it.ev == nil {
		return c.session.QueueTake(it.rule, it.cost, it.Terms, it.key...)
	}
	if err := c.session.Prepare(it.ev); err != nil {
		return err
	}
	return c.session.QueueCheck(it.ev, it.cost, it.Terms)
}

// answerItem answers with the decision about one item, or with err.
func (c *call) answerItem(it item, err error, terms engine.Terms) error {
	if err == nil {
		err = c.queue(&it, terms)
	}
	if err != nil {
		return err
	}
	for d, err := range c.session.Decide() {
		if err != nil {
			return err
		}
		c.out = append(c.appendDecision(c.out[:0], d), '\n')
	}
	return c.send(200, jsonType)
}

// answerItems answers with the decisions about several items.
func (c *call) answerItems(n int, terms engine.Terms, next func(i int) (item, error)) error {
	if n == 0 {
		return errNoEntries
	}
	c.out = append(c.out[:0], `{"decisions":[`...)
	done, failed := 0, []failure(nil)
	for i := range n {
		if c.session.Queued() == engine.MaxBatch {
			done, failed = c.decide(done, failed), nil
		}
		it, err := next(i)
		if err == nil {
			err = c.queue(&it, terms)
		}
		if err != nil {
			failed = append(failed, failure{i, err})
		}
	}
	c.decide(done, failed)
	c.out[len(c.out)-1] = ']' // for the last comma
	c.out = append(c.out, "}\n"...)
	return c.send(200, jsonType)
}

// A failure is why an item of a list was not queued.
type failure struct {
	item int
	err  error
}

// decide makes the decisions that are queued, and appends them and the failures among them, in
// order, from that item on. It returns the next item.
func (c *call) decide(item int, failed []failure) int {
	fail := func() {
		for ; len(failed) > 0 && failed[0].item == item; item++ {
			c.appendResult(nil, failed[0].err)
			failed = failed[1:]
		}
	}
	for d, err := range c.session.Decide() {
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
		c.session.Failed()
		b, _ := json.Marshal(api.Result{Error: failureOf(err)}) // strings have no error
		c.out = append(c.out, b...)
	} else {
		c.out = c.appendDecision(c.out, d)
	}
	c.out = append(c.out, ',')
}

// appendDecision appends d, which was just made, with its id.
func (c *call) appendDecision(dst []byte, d *ratelimit.Decision) []byte {
	dst = appendDecision(dst, d)
	if id, _ := c.session.ID(); len(id) > 0 {
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
