package httpapi

import (
	"net/http"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/window"
)

// decisionRoutes returns the routes of services, which judge events and keys.
func decisionRoutes() []route {
	return []route{
		{"POST", "/v1/check", access.Check, judgeHandler(api.CheckRequest{}, engine.Terms{}, "event and events", eventList), "check", "Count an event, or several, and judge it under all rules that match it", nil},
		{"POST", "/v1/outcome", access.Check, judgeHandler(api.OutcomeRequest{}, engine.Terms{Outcome: true}, "event and events", eventList), "outcome", "Report the answer to a request, or several: status, size or duration, with the id of the decision or the fields of the request; rules with these count it", nil},
		{"POST", "/v1/take", access.Check, judgeHandler(api.TakeRequest{}, engine.Terms{}, "rule with key, and takes", takeList), "take", "Count an event of a key, or several, and judge it under one rule", nil},
		{"POST", "/v1/peek", access.Check, judgeHandler(api.PeekRequest{}, engine.Terms{Peek: true}, "event, rule with key, events, and takes", eventList, takeList), "peek", "Return the decision of check or take, and change nothing", nil},
		{"POST", "/v1/charge", access.Check, bodyHandler(charge), "charge", "Count a cost of a key, or several, also beyond the limit; nothing is refused", nil},
		{"POST", "/v1/reserve", access.Check, judgeHandler(api.ReserveRequest{}, engine.Terms{Hold: engine.DefaultHold}, "event, rule with key, events, and takes", eventList, takeList), "reserve", "Count an event as check or take does, at an estimated cost, and return the decision with an id for settle", nil},
		{"POST", "/v1/settle", access.Check, handler{serve: bodyHandler(settle).serve, in: api.SettleRequest{}, out: oneOf{api.Settled{}, api.SettleResults{}}}, "settle", "Correct the cost of a reservation, or of several", nil},
		{"POST", "/v1/refund", access.Check, bodyHandler(refund), "refund", "Give back units of a key under a rule, the oldest first", nil},
		{"POST", "/v1/release", access.Check, bodyHandler(release), "release", "End events in progress of a key under an in-flight rule, the oldest first", nil},
		{"POST", "/v1/throttle", access.Check, bodyHandler(throttle), "throttle", "Judge an event of a key by a limit in the request (GCRA)", nil},
		{"POST", "/v1/feeds/open", access.Check, bodyHandler(openFeed), "openFeed", "Begin to send the events of logs that are followed on another machine, and return how far they were judged", nil},
		{"POST", feedPath, access.Check, bodyHandler(judgeFeed), "judgeFeed", "Judge events of a feed at their own times, and keep where its follower is", nil},
		{"POST", "/v1/reset", access.Admin, bodyHandler(reset), "reset", "Delete the counts of a key under a rule; bans are kept", nil},
		{
			"", authPath, access.Check,
			handler{serve: forwardAuth, status: http.StatusNoContent},
			"forwardAuth",
			"Tell a trusted proxy whether to serve a request: 204, or 429 if it is refused; with the target of the request after the path, as Envoy asks, 200 or 429",
			[]parameter{
				{"refuse", "the status of a refusal instead of 429: nginx accepts 403 only", "403", false},
				{"outcome_ms", "asks for an id in Lately-Decision-Id by which the outcome can be reported for so long: 1 ms to a day; there is none if no rule looks at the answer to such a request", "600000", false},
			},
		},
		{
			"", answerPath, access.Check,
			handler{serve: forwardOutcome, status: http.StatusNoContent},
			"forwardOutcome",
			"Report the answer to a request that a trusted proxy has served, with the id of the decision or the fields of forwardAuth, and the answer in X-Original-Status, X-Original-Size and X-Original-Duration, or in the query",
			[]parameter{
				{"id", "the id of the decision; nothing is counted if it is empty", "k3nZ", false},
				{"status", "the status of the answer", "401", false},
				{"size", "its size in bytes", "1024", false},
				{"duration", "how long the request took, in seconds", "0.25", false},
			},
		},
	}
}

// charge makes the charge of a body, or each of its list.
func charge(c *call, req *api.ChargeRequest) (api.Charged, error) {
	if req.Charges == nil {
		return api.Charged{}, c.chargeOne(&req.ChargeItem)
	}
	if req.Rule != "" || given(req.Key) || req.Cost != nil {
		return api.Charged{}, badArg("body: must be one of rule with key, and charges")
	}
	results, err := each(req.Charges, func(t *api.ChargeItem) (api.ChargeResult, error) {
		return api.ChargeResult{}, c.chargeOne(t)
	}, func(f *api.Failure) api.ChargeResult { return api.ChargeResult{Error: f} })
	return api.Charged{Charges: results}, err
}

// chargeOne charges a key.
func (c *call) chargeOne(t *api.ChargeItem) error {
	it, err := c.decoded(&judgeItem{Rule: t.Rule, Key: t.Key, Cost: t.Cost}, takeList)
	if err == nil {
		err = c.session.Charge(it.rule, it.cost, it.key...)
	}
	return err
}

// settle makes the settlement of a body, or each of its list.
func settle(c *call, req *api.SettleRequest) (any, error) {
	if req.Settlements == nil {
		return c.settleOne(&req.Settlement)
	}
	if req.ID != "" || req.Cost != nil {
		return nil, badArg("body: must be one of id with cost, and settlements")
	}
	results, err := each(req.Settlements, func(s *api.Settlement) (api.SettleResult, error) {
		settled, err := c.settleOne(s)
		return api.SettleResult{Settled: &settled}, err
	}, func(f *api.Failure) api.SettleResult { return api.SettleResult{Error: f} })
	return api.SettleResults{Settlements: results}, err
}

// settleOne settles a reservation.
func (c *call) settleOne(s *api.Settlement) (settled api.Settled, err error) {
	switch {
	case s.ID == "":
		return settled, badArg("id: missing: must be the id of a reservation")
	case s.Cost == nil:
		return settled, badArg("cost: missing: must be what the event has cost, 0 to %d", uint64(engine.MaxCost))
	}
	if err := checkActual("cost", *s.Cost); err != nil {
		return settled, err
	}
	settled.Settled, err = c.session.Settle(s.ID, *s.Cost)
	return settled, err
}

// checkActual returns an error unless n is a cost that an event can have had.
func checkActual(what string, n uint64) error {
	if n > engine.MaxCost {
		return badArg("%s: %d: must be 0 to %d", what, n, uint64(engine.MaxCost))
	}
	return nil
}

// each returns the result of each entry of a list, that of failed for one with an error.
func each[In, Out any](list []In, do func(*In) (Out, error), failed func(*api.Failure) Out) ([]Out, error) {
	if len(list) == 0 {
		return nil, errNoEntries
	}
	all := make([]Out, len(list))
	for i := range list {
		var err error
		if all[i], err = do(&list[i]); err != nil {
			all[i] = failed(failureOf(err))
		}
	}
	return all, nil
}

func refund(c *call, req *api.RefundRequest) (api.Refunded, error) {
	n, err := c.giveBackUnits(req, c.session.Refund)
	return api.Refunded{Refunded: n}, err
}

func release(c *call, req *api.RefundRequest) (api.Released, error) {
	n, err := c.giveBackUnits(req, c.session.Release)
	return api.Released{Released: n}, err
}

// giveBackUnits passes a request to Refund or Release.
func (c *call) giveBackUnits(req *api.RefundRequest, method func(rule string, n uint64, key ...string) (uint64, error)) (uint64, error) {
	n, err := amount("n", req.N)
	if err != nil {
		return 0, err
	}
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return 0, err
	}
	return method(req.Rule, n, key...)
}

func reset(c *call, req *api.RuleKey) (ok api.Nothing, err error) {
	key, err := ruleKey(req.Rule, req.Key)
	if err != nil {
		return ok, err
	}
	if err := c.session.Reset(req.Rule, key...); err != nil {
		return ok, err
	}
	c.audit("key reset", "rule", req.Rule, "key", keys.Text(c.s.Engine.Listed(req.Rule, key)))
	return ok, nil
}

// maxPeriod is the longest time that a request may name, in milliseconds.
const maxPeriod = api.Millis(window.MaxSpan / time.Millisecond)

func throttle(c *call, req *api.ThrottleRequest) (t api.Throttled, err error) {
	quantity := uint64(1)
	if req.Quantity != nil {
		quantity = *req.Quantity
	}
	switch {
	case req.Key == "":
		return t, badArg("key: missing: must be a string of 1 to %d bytes", keys.Max)
	case req.Period < 1 || req.Period > maxPeriod:
		return t, badArg("period_ms: %d: must be 1 to %d", req.Period, maxPeriod)
	case quantity > engine.MaxCost:
		return t, badArg("quantity: %d: must be 0 to %d", quantity, uint64(engine.MaxCost))
	}
	d, err := c.session.Throttle(req.Key, req.Burst, req.Count, req.Period.Duration(), quantity)
	if err != nil {
		return t, err
	}
	return api.Throttled{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: api.MillisOf(d.RetryAfter), ResetAfter: api.MillisOf(d.ResetAfter),
	}, nil
}

// audit logs a change, and who has made it.
func (c *call) audit(what string, args ...any) {
	c.s.Log.Info(what, append(args, "by", c.Name, "role", c.Role.String(), "peer", access.PeerName(c.peer()))...)
}
