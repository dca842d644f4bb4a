package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
)

// Counters returns the server's counters, first the counters of the rules file.
func (c *Client) Counters(ctx context.Context) ([]api.Counter, error) {
	out, err := get[api.CounterList](ctx, c, "/v1/counters", nil)
	return out.Counters, err
}

// Add adds n to a key of a counter. A counter that does not exist is created, if the
// server has memory for it. For n 0 nothing is sent.
func (c *Client) Add(ctx context.Context, counter string, n uint64, key ...string) error {
	if n == 0 {
		return nil
	}
	_, err := post[api.Nothing](ctx, c, counterPath(counter, "add"), api.AddRequest{Key: api.KeyOf(key...), N: &n})
	return err
}

// Sum returns the count of a key over a span that ends now. Span 0 is the counter's
// longest.
func (c *Client) Sum(ctx context.Context, counter string, span time.Duration, key ...string) (api.Count, error) {
	query := spanQuery(span)
	query["key"] = key
	return get[api.Count](ctx, c, counterPath(counter, "sum"), query)
}

// Top returns the n keys of a counter with the largest counts over a span that ends
// now, the largest first. Span 0 is the counter's longest. It costs the server one
// pass over the counter's keys.
func (c *Client) Top(ctx context.Context, counter string, n int, span time.Duration) ([]api.KeyCount, error) {
	query := spanQuery(span)
	query.Set("n", strconv.Itoa(n))
	out, err := get[api.TopList](ctx, c, counterPath(counter, "top"), query)
	return out.Top, err
}

// Refused returns the n keys that limits and bans refused most over a span that ends now,
// 1 s to 1 h, the most refused first.
func (c *Client) Refused(ctx context.Context, n int, span time.Duration) ([]api.RefusedKey, error) {
	query := spanQuery(span)
	query.Set("n", strconv.Itoa(n))
	out, err := get[api.RefusedList](ctx, c, "/v1/refused", query)
	return out.Refused, err
}

// Key returns the state of the key with these values in these fields, one value
// per field, in the order of a rule's or counter's key.
func (c *Client) Key(ctx context.Context, fields, values []string) (api.KeyReport, error) {
	if len(fields) == 0 || len(fields) != len(values) {
		return api.KeyReport{}, fmt.Errorf("key: %d fields and %d values: must be as many of one as of the other, and at least 1", len(fields), len(values))
	}
	return get[api.KeyReport](ctx, c, "/v1/key", url.Values{"field": fields, "value": values})
}

// Explain returns the recently refused keys that contain all of these values, such as an
// address, a user or a path, with the reasons.
func (c *Client) Explain(ctx context.Context, values ...string) (api.Explanation, error) {
	return get[api.Explanation](ctx, c, "/v1/explain", url.Values{"key": values})
}

func counterPath(counter, verb string) string {
	return "/v1/counters/" + url.PathEscape(counter) + "/" + verb
}

func spanQuery(span time.Duration) url.Values {
	if span == 0 {
		return url.Values{}
	}
	return url.Values{"span": {spanText(span)}}
}
