package client

import (
	"context"
	"errors"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// decision is a [ratelimit.Decision] on the wire.
type decision struct {
	Allowed     bool   `json:"allowed"`
	Limit       uint64 `json:"limit"`
	Remaining   uint64 `json:"remaining"`
	RetryAfter  int64  `json:"retry_after_ms"`
	ResetAfter  int64  `json:"reset_after_ms"`
	Rule        string `json:"rule"`
	BannedUntil int64  `json:"banned_until_ms"`
	Delay       int64  `json:"delay_ms"`
}

func (d *decision) decision() ratelimit.Decision {
	out := ratelimit.Decision{
		Allowed: d.Allowed, Rule: d.Rule, Limit: d.Limit, Remaining: d.Remaining,
		RetryAfter: milliseconds(d.RetryAfter), ResetAfter: milliseconds(d.ResetAfter),
		Delay: milliseconds(d.Delay),
	}
	if d.RetryAfter < 0 {
		out.RetryAfter = ratelimit.Never
	}
	if d.BannedUntil != 0 {
		out.BannedUntil = time.UnixMilli(d.BannedUntil)
	}
	return out
}

// milliseconds returns so many of them, or the longest Duration if that is less.
func milliseconds(n int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(min(n, longest), -longest)) * time.Millisecond
}

// Check counts an event of these fields under every rule that matches it, and
// returns the decision about it. The cost is 1 or more; 0 is taken for 1. Fields are
// sent as text: bytes that are not UTF-8 become U+FFFD, and values that differ in
// these only are counted as one. Take has keys of any bytes.
func (c *Client) Check(ctx context.Context, event map[string]string, cost uint64) (ratelimit.Decision, error) {
	return c.event(ctx, "/v1/check", event, cost)
}

// PeekEvent returns the decision that Check would return now, and changes nothing.
func (c *Client) PeekEvent(ctx context.Context, event map[string]string, cost uint64) (ratelimit.Decision, error) {
	return c.event(ctx, "/v1/peek", event, cost)
}

func (c *Client) event(ctx context.Context, path string, event map[string]string, cost uint64) (ratelimit.Decision, error) {
	if event == nil {
		event = map[string]string{}
	}
	return c.decide(ctx, path, struct {
		Event map[string]string `json:"event"`
		Cost  uint64            `json:"cost"`
	}{event, max(cost, 1)})
}

// Take counts an event with this key under one rule, and returns the decision about
// it. The key is the values of the rule's key, in the order of its fields. The cost is
// 1 or more; 0 is taken for 1.
func (c *Client) Take(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return c.rule(ctx, "/v1/take", rule, cost, key)
}

// Peek returns the decision that Take would return now, and changes nothing.
func (c *Client) Peek(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return c.rule(ctx, "/v1/peek", rule, cost, key)
}

func (c *Client) rule(ctx context.Context, path, rule string, cost uint64, key []string) (ratelimit.Decision, error) {
	return c.decide(ctx, path, struct {
		ruleKey
		Cost uint64 `json:"cost"`
	}{ruleKey{rule, wireKey(key)}, max(cost, 1)})
}

func (c *Client) decide(ctx context.Context, path string, in any) (ratelimit.Decision, error) {
	var out struct {
		decision
		Rule *string `json:"rule"` // tells a decision from any other object
	}
	if err := c.post(ctx, path, in, &out); err != nil {
		return ratelimit.Decision{}, err
	}
	if out.Rule == nil {
		return ratelimit.Decision{}, errors.New(c.base + " does not answer as a lately server does: that is no decision")
	}
	out.decision.Rule = *out.Rule
	return out.decision.decision(), nil
}

// Refund gives back what n events of cost 1 took of a rule, and returns how many
// there were to give back.
func (c *Client) Refund(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	in := struct {
		ruleKey
		N uint64 `json:"n"`
	}{ruleKey{rule, wireKey(key)}, n}
	var out struct {
		Refunded uint64 `json:"refunded"`
	}
	err := c.post(ctx, "/v1/refund", in, &out)
	return out.Refunded, err
}

// Release ends n events of this key that are under way under an in-flight rule, and
// returns how many there were to end. To hold a place, Take it, and Release it when the
// work is over. A place whose Release never comes, as the holder has crashed, is free
// again after the rule's span. A Release whose answer was lost must not be repeated: it
// might end another's event.
func (c *Client) Release(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	in := struct {
		ruleKey
		N uint64 `json:"n"`
	}{ruleKey{rule, wireKey(key)}, n}
	var out struct {
		Released uint64 `json:"released"`
	}
	err := c.post(ctx, "/v1/release", in, &out)
	return out.Released, err
}

// Reset makes a rule forget what it counted for a key. Its bans stay.
func (c *Client) Reset(ctx context.Context, rule string, key ...string) error {
	return c.post(ctx, "/v1/reset", ruleKey{rule, wireKey(key)}, nil)
}
