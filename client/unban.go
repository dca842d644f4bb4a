package client

import "context"

// A BanFilter selects bans. A ban is selected if it satisfies every field that is
// not empty; at least one must be set.
type BanFilter struct {
	// Rule is the name of the rule.
	Rule string `json:"rule,omitempty"`

	// Pattern is a glob with *, ?, [a-c] and a backslash, as Redis has them. It must
	// match one value of the key, or all of them joined by tabs.
	Pattern string `json:"pattern,omitempty"`

	// Network is an address or a network, such as 192.0.2.0/24. It must contain one
	// value of the key.
	Network string `json:"network,omitempty"`
}

// UnbanAll ends all bans that f selects, and returns how many. Once it has returned,
// they stay ended over a restart of a server that keeps its state. A ban that begins
// meanwhile may stay. The filter must not be empty; the Pattern "*" selects every ban.
func (c *Client) UnbanAll(ctx context.Context, f BanFilter) (n int, err error) {
	var out struct {
		Unbanned int `json:"unbanned"`
	}
	err = c.post(ctx, "/v1/bans/unban", f, &out)
	return out.Unbanned, err
}
