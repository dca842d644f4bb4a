package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

func refund(c *call, req *api.RefundRequest) (api.Refunded, error) {
	n, err := c.giveUp(req, c.engine.Refund)
	return api.Refunded{Refunded: n}, err
}

func release(c *call, req *api.RefundRequest) (api.Released, error) {
	n, err := c.giveUp(req, c.engine.Release)
	return api.Released{Released: n}, err
}

// giveUp passes a request to Refund or Release.
func (c *call) giveUp(req *api.RefundRequest, method func(rule string, n uint64, key ...string) (uint64, error)) (uint64, error) {
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
	if err := c.engine.Reset(req.Rule, key...); err != nil {
		return ok, err
	}
	c.audit("key reset", "rule", req.Rule, "key", engine.KeyText(key))
	return ok, nil
}

// maxPeriod keeps a number of milliseconds within a time.Duration.
const maxPeriod = api.Millis(1<<63-1) / api.Millis(time.Millisecond)

func throttle(c *call, req *api.ThrottleRequest) (t api.Throttled, err error) {
	quantity := uint64(1)
	if req.Quantity != nil {
		quantity = *req.Quantity
	}
	switch {
	case req.Key == "":
		return t, badArg("key: missing: must be a string of 1 to %d bytes", engine.MaxKey)
	case req.Period < 1 || req.Period > maxPeriod:
		return t, badArg("period_ms: %d: must be 1 to %d", req.Period, maxPeriod)
	case quantity > engine.MaxCost:
		return t, badArg("quantity: %d: must be 0 to %d", quantity, uint64(engine.MaxCost))
	}
	d, err := c.engine.Throttle(req.Key, req.Burst, req.Count, req.Period.Duration(), quantity)
	if err != nil {
		return t, err
	}
	return api.Throttled{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: api.MillisOf(d.RetryAfter), ResetAfter: api.MillisOf(d.ResetAfter),
	}, nil
}

// audit logs a change, and who has made it.
func (c *call) audit(what string, args ...any) {
	c.s.Log.Info(what, append(args, "by", c.Name, "role", c.Role.String(), "peer", c.peer().String())...)
}
