package client

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// A RefusedKey is a key that a rule has refused: the true number of refusals over the
// span that was asked for lies in [Lo, Hi].
type RefusedKey struct {
	Rule        string
	Key         []string // the values of its fields
	Lo, Hi      uint64
	PerSecond   float64   // Lo divided by the span
	BannedUntil time.Time // by the rule; zero if it does not ban the key
}

// UnmarshalJSON reads a key as servers write it.
func (k *RefusedKey) UnmarshalJSON(b []byte) error {
	var wire struct {
		Rule string `json:"rule"`
		keyText
		Lo          uint64    `json:"lo"`
		Hi          uint64    `json:"hi"`
		PerSecond   float64   `json:"per_second"`
		BannedUntil time.Time `json:"banned_until"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*k = RefusedKey{wire.Rule, wire.values(), wire.Lo, wire.Hi, wire.PerSecond, wire.BannedUntil}
	return nil
}

// Refused returns the n keys that limits and bans refused most over a span that ends now,
// 1 s to 1 h, the most refused first.
func (c *Client) Refused(ctx context.Context, n int, span time.Duration) ([]RefusedKey, error) {
	query := spanQuery(span)
	query.Set("n", strconv.Itoa(n))
	var out struct {
		Refused []RefusedKey `json:"refused"`
	}
	err := c.get(ctx, "/v1/refused", query, &out)
	return out.Refused, err
}
