package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// decisionOf returns the decision that a limiter in this process would have returned.
func decisionOf(d *api.Decision) ratelimit.Decision {
	out := ratelimit.Decision{
		Allowed: d.Allowed, Rule: d.Rule, Limit: d.Limit, Remaining: d.Remaining,
		RetryAfter: d.RetryAfter.Duration(), ResetAfter: d.ResetAfter.Duration(), Delay: d.Delay.Duration(), Missing: d.Missing,
	}
	if d.RetryAfter < 0 {
		out.RetryAfter = ratelimit.Never
	}
	if d.BannedUntil != 0 {
		out.BannedUntil = time.UnixMilli(int64(d.BannedUntil))
	}
	return out
}

// Check counts an event with these fields under every rule that matches it, and
// returns the decision. Cost 0 means 1. Fields are sent as text: bytes that are not
// UTF-8 become U+FFFD, so values that differ only in these are counted as one. Use
// [Client.Take] for keys of any bytes.
func (c *Client) Check(ctx context.Context, event map[string]string, cost uint64) (ratelimit.Decision, error) {
	return c.decide(ctx, "/v1/check", checkItem(event, cost))
}

// CheckID is Check with an id by which Outcome can report the answer within hold: up to a day, 0
// means ten minutes. The id is "" if there is nothing to report: the event is refused, or no rule
// counts its answer.
func (c *Client) CheckID(ctx context.Context, event map[string]string, cost uint64, hold time.Duration) (d ratelimit.Decision, id string, err error) {
	it := checkItem(event, cost)
	it.Outcome = new(api.MillisOf(cmp.Or(hold, 10*time.Minute)))
	return c.judge(ctx, "/v1/check", it)
}

// Outcome reports the answers to at most 1,000 requests that Check or CheckID has allowed. The
// event of an answer needs status, size or duration, and also the fields of Check unless it has the
// ID of CheckID. Rules with conditions on answers count it, even above their limits. An ID counts
// once: repeat a call whose answer was lost. The results are in the order of the answers, each with
// its own error, which is [api.BadID] or [api.Expired] for a bad ID. A decision is always Allowed;
// if the answer has begun a ban, BannedUntil is its end.
func (c *Client) Outcome(ctx context.Context, answers ...api.OutcomeItem) ([]api.Result, error) {
	out, err := post[api.Results](ctx, c, "/v1/outcome", api.OutcomeRequest{Events: answers})
	if err == nil && len(out.Decisions) != len(answers) {
		err = errors.New(c.addr + ": not a lately server: the answer has another number of results")
	}
	return out.Decisions, err
}

// PeekEvent returns the decision that Check would return now, and changes nothing.
func (c *Client) PeekEvent(ctx context.Context, event map[string]string, cost uint64) (ratelimit.Decision, error) {
	return c.decide(ctx, "/v1/peek", checkItem(event, cost))
}

func checkItem(event map[string]string, cost uint64) api.CheckItem {
	if event == nil {
		event = map[string]string{}
	}
	return api.CheckItem{Event: event, Cost: new(max(cost, 1))}
}

// Take counts an event with this key under one rule, and returns the decision. The key
// is the values of the rule's key, in the order of its fields. Cost 0 means 1.
func (c *Client) Take(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return c.TakeLimit(ctx, rule, 0, cost, key...)
}

// TakeLimit is Take with the event's own limit, such as a customer's plan, under a rule with
// at_most, which bounds it. The key has one window, so a new limit takes effect in the
// middle of it. Limit 0 means the rule's limit.
func (c *Client) TakeLimit(ctx context.Context, rule string, limit, cost uint64, key ...string) (ratelimit.Decision, error) {
	return c.decide(ctx, "/v1/take", takeItem(rule, key, limit, cost))
}

// Peek returns the decision that Take would return now, and changes nothing.
func (c *Client) Peek(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return c.decide(ctx, "/v1/peek", takeItem(rule, key, 0, cost))
}

// takeItem returns an event of a key, with a limit unless that is 0.
func takeItem(rule string, key []string, limit, cost uint64) api.TakeItem {
	it := api.TakeItem{Rule: rule, Key: api.KeyOf(key...), Cost: new(max(cost, 1))}
	if limit > 0 {
		it.Limit = &limit
	}
	return it
}

func (c *Client) decide(ctx context.Context, path string, in any) (ratelimit.Decision, error) {
	d, _, err := c.judge(ctx, path, in)
	return d, err
}

// judge returns a decision, and the id of its reservation.
func (c *Client) judge(ctx context.Context, path string, in any) (d ratelimit.Decision, id string, err error) {
	out, err := post[struct {
		api.Decision
		Rule *string `json:"rule"` // distinguishes a decision from any other object
	}](ctx, c, path, in)
	if err != nil {
		return d, "", err
	}
	if out.Rule == nil {
		return d, "", errors.New(c.addr + ": not a lately server: the answer is no decision")
	}
	out.Decision.Rule = *out.Rule
	return decisionOf(&out.Decision), out.ID, nil
}

// Refund gives back up to n units that this key has used under one rule, and returns the number
// given back. It is for units that were not reserved: [Client.Settle] corrects a reservation. Do
// not repeat a Refund whose answer was lost: it might give back twice. For n 0 nothing is sent.
func (c *Client) Refund(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	out, err := post[api.Refunded](ctx, c, "/v1/refund", api.RefundRequest{Rule: rule, Key: api.KeyOf(key...), N: &n})
	return out.Refunded, err
}

// Release ends n current events of this key under an in-flight rule, and returns the
// number ended. Take such an event before the work, and Release it after. If a client
// fails in between, the event ends after the rule's span. Do not repeat a Release
// whose answer was lost: it might end another event. For n 0 nothing is sent.
func (c *Client) Release(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	out, err := post[api.Released](ctx, c, "/v1/release", api.RefundRequest{Rule: rule, Key: api.KeyOf(key...), N: &n})
	return out.Released, err
}

// Reset deletes the counts of a key under a rule. Its bans stay.
func (c *Client) Reset(ctx context.Context, rule string, key ...string) error {
	_, err := post[api.Nothing](ctx, c, "/v1/reset", api.RuleKey{Rule: rule, Key: api.KeyOf(key...)})
	return err
}

// OpenFeed opens a session for sending the events of followed logs, as lately follow --addr does,
// and returns the position up to which the server has judged them. It ends earlier sessions of this
// feed.
func (c *Client) OpenFeed(ctx context.Context, o api.FeedOpening) (api.Feed, error) {
	return post[api.Feed](ctx, c, "/v1/feeds/open", o)
}

// SendFeed makes the server judge a batch of events at their own times, and store the batch's
// state together with their counts. After an error, the batch may have been judged: open the
// feed again and compare the state. An [Error] with code [api.NoFeed] means that the server
// was restarted.
func (c *Client) SendFeed(ctx context.Context, b api.FeedBatch) (api.FeedResult, error) {
	return post[api.FeedResult](ctx, c, "/v1/feeds/events", b)
}
