package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

func refund(c *call) error {
	n, err := c.undo(c.caller.Refund)
	if err != nil {
		return err
	}
	return c.answer(api.Refunded{Refunded: n})
}

func release(c *call) error {
	n, err := c.undo(c.caller.Release)
	if err != nil {
		return err
	}
	return c.answer(api.Released{Released: n})
}

// undo reads a RefundRequest and passes it to verb.
func (c *call) undo(verb func(rule, key string, n uint64) (uint64, error)) (uint64, error) {
	var req api.RefundRequest
	if err := c.decode(&req); err != nil {
		return 0, err
	}
	n, err := amount(req.N)
	if err != nil {
		return 0, err
	}
	key, err := c.keyOf(req.Rule, req.Key)
	if err != nil {
		return 0, err
	}
	return verb(req.Rule, key, n)
}

// amount returns a number of things that may be left out.
func amount(n *uint64) (uint64, error) {
	if n == nil {
		return 1, nil
	}
	return *n, checkCost("n", *n)
}

func reset(c *call) error {
	var req api.RuleKey
	if err := c.decode(&req); err != nil {
		return err
	}
	key, err := c.keyOf(req.Rule, req.Key)
	if err != nil {
		return err
	}
	if err := c.caller.Reset(req.Rule, key); err != nil {
		return err
	}
	c.audit("key reset", "rule", req.Rule, "key", key)
	return c.answer(api.Nothing{})
}

// maxPeriod keeps a number of milliseconds within a time.Duration.
const maxPeriod = api.Millis(1<<63-1) / api.Millis(time.Millisecond)

func throttle(c *call) error {
	var req api.ThrottleRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	quantity := uint64(1)
	if req.Quantity != nil {
		quantity = *req.Quantity
	}
	switch {
	case req.Key == "":
		return badArg("key is missing; allowed is a string of 1 to %d bytes", engine.MaxKey)
	case req.Period < 1 || req.Period > maxPeriod:
		return badArg("period_ms is %d; allowed is 1 to %d", req.Period, maxPeriod)
	case quantity > engine.MaxCost:
		return badArg("quantity is %d; allowed is 0 to %d", quantity, uint64(engine.MaxCost))
	}
	d, err := c.caller.Throttle(req.Key, req.Burst, req.Count, req.Period.Duration(), quantity)
	if err != nil {
		return err
	}
	wait := d.RetryAfter
	if !d.Limited {
		wait = 0 // as in every decision of this API
	}
	return c.answer(api.Throttled{Allowed: !d.Limited, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: api.MillisOf(wait), ResetAfter: api.MillisOf(d.ResetAfter)})
}

// audit notes who has changed what.
func (c *call) audit(what string, args ...any) {
	c.s.Log.Info(what, append(args, "by", c.who, "role", c.role.String(), "peer", c.peer().String())...)
}
