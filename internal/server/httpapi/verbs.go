package httpapi

import (
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

// A refundRequest gives back what a key has used.
type refundRequest struct {
	Rule   string   `json:"rule"`
	Key    keyArg   `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
	N      *uint64  `json:"n,omitempty" range:"cost" doc:"how much; 1 if it is left out"`
}

type refunded struct {
	Refunded uint64 `json:"refunded" doc:"how much was given back: no more than was used"`
}

func refund(c *call) error {
	var req refundRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	n, err := amount(req.N)
	if err != nil {
		return err
	}
	key, err := c.keyOf(req.Rule, req.Key, req.Base64)
	if err != nil {
		return err
	}
	n, err = c.caller.Refund(req.Rule, key, n)
	if err != nil {
		return err
	}
	return c.answer(refunded{n})
}

// A releaseRequest ends events under way.
type releaseRequest struct {
	Rule   string   `json:"rule"`
	Key    keyArg   `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
	N      *uint64  `json:"n,omitempty" range:"cost" doc:"how many; 1 if it is left out"`
}

type released struct {
	Released uint64 `json:"released" doc:"how many were ended: no more than were under way"`
}

func release(c *call) error {
	var req releaseRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	n, err := amount(req.N)
	if err != nil {
		return err
	}
	key, err := c.keyOf(req.Rule, req.Key, req.Base64)
	if err != nil {
		return err
	}
	n, err = c.caller.Release(req.Rule, key, n)
	if err != nil {
		return err
	}
	return c.answer(released{n})
}

// amount returns a number of things that may be left out.
func amount(n *uint64) (uint64, error) {
	if n == nil {
		return 1, nil
	}
	return *n, checkCost("n", *n)
}

// A resetRequest forgets what a key has used.
type resetRequest struct {
	Rule   string   `json:"rule"`
	Key    keyArg   `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
}

func reset(c *call) error {
	var req resetRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	key, err := c.keyOf(req.Rule, req.Key, req.Base64)
	if err != nil {
		return err
	}
	if err := c.caller.Reset(req.Rule, key); err != nil {
		return err
	}
	c.audit("key reset", "rule", req.Rule, "key", key)
	return c.answer(nothing{})
}

// A throttleRequest is an event of a key with the limit that it is judged by.
type throttleRequest struct {
	Key      string  `json:"key"`
	Burst    uint64  `json:"burst" doc:"how many more at once"`
	Count    uint64  `json:"count"`
	Period   int64   `json:"period_ms"`
	Quantity *uint64 `json:"quantity,omitempty"`
}

// A throttled is its decision.
type throttled struct {
	Allowed    bool   `json:"allowed"`
	Limit      uint64 `json:"limit"`
	Remaining  uint64 `json:"remaining"`
	RetryAfter int64  `json:"retry_after_ms"`
	ResetAfter int64  `json:"reset_after_ms"`
}

// maxPeriod keeps a number of milliseconds within a time.Duration.
const maxPeriod = int64(1<<63-1) / int64(time.Millisecond)

func throttle(c *call) error {
	var req throttleRequest
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
	d, err := c.caller.Throttle(req.Key, req.Burst, req.Count, time.Duration(req.Period)*time.Millisecond, quantity)
	if err != nil {
		return err
	}
	wait := d.RetryAfter
	if !d.Limited {
		wait = 0 // as in every decision of this API
	}
	return c.answer(throttled{!d.Limited, d.Limit, d.Remaining, waitMillis(wait), waitMillis(d.ResetAfter)})
}

// audit notes who has changed what.
func (c *call) audit(what string, args ...any) {
	c.s.log.Info(what, append(args, "by", c.who, "role", c.role.String(), "peer", c.peer().String())...)
}
