package client

import (
	"context"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
)

// Status returns the state of the server.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return get[api.Status](ctx, c, "/v1/status", nil)
}

// Rules returns the rules in force.
func (c *Client) Rules(ctx context.Context) (api.RuleSet, error) {
	return get[api.RuleSet](ctx, c, "/v1/rules", nil)
}

// Reload makes the server read its rules file again, and returns the changes. If the file
// has mistakes, the rules stay, and the error lists them. Removing a rule with bans, or
// changing its key, is an error unless dropBans is set.
func (c *Client) Reload(ctx context.Context, dropBans bool) (api.RuleChanges, error) {
	return post[api.RuleChanges](ctx, c, "/v1/rules/reload", api.ReloadRequest{DropBans: dropBans})
}

// trialTimeout is longer than a server lets a trial take.
const trialTimeout = 65 * time.Second

// TryRules makes the server judge its recent events under a draft of its rules, and
// returns what the draft would have changed. The rules in force stay. If the draft has
// mistakes, the answer lists them, and nothing was tried. It may take a minute;
// Config.Timeout does not apply.
func (c *Client) TryRules(ctx context.Context, draft api.TrialRequest) (api.Trial, error) {
	patient := *c
	patient.config.Timeout = max(c.config.Timeout, trialTimeout)
	return post[api.Trial](ctx, &patient, "/v1/rules/try", draft)
}

// Rates returns the numbers of decisions in the last span, from a second to a day, in
// at most points parts of equal width, oldest first; fewer if the server is younger.
// With perRule, each part also has the totals of each rule.
func (c *Client) Rates(ctx context.Context, span time.Duration, points int, perRule bool) ([]api.Rate, error) {
	query := spanQuery(span)
	query.Set("points", strconv.Itoa(points))
	if perRule {
		query.Set("rules", "1")
	}
	out, err := get[api.RateList](ctx, c, "/v1/rates", query)
	return out.Rates, err
}

// Hot returns the hot keys, the newest first.
func (c *Client) Hot(ctx context.Context) ([]api.HotKey, error) {
	out, err := get[api.HotList](ctx, c, "/v1/hot", nil)
	return out.Hot, err
}

// HotStats returns the numbers of reports under hot rules, and of reads that
// caches served.
func (c *Client) HotStats(ctx context.Context) (api.HotStats, error) {
	return get[api.HotStats](ctx, c, "/v1/hot/stats", nil)
}
