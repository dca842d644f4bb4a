package engine

import (
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// DecisionOf returns d as the API has it.
func DecisionOf(d *ratelimit.Decision) api.Decision {
	return api.Decision{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: api.MillisOf(d.RetryAfter), ResetAfter: api.MillisOf(d.ResetAfter),
		Rule: d.Rule, BannedUntil: api.Millis(EpochMillis(d.BannedUntil)), Delay: api.MillisOf(d.Delay),
	}
}

// BanOf returns r as the API has it.
func BanOf(r *ratelimit.BanRecord) api.Ban {
	return api.Ban{Rule: r.Rule, Key: api.KeyOf(r.Key...), Since: r.Since.UTC(), Until: r.Until.UTC(), Count: r.Count, Reason: r.Reason, Source: r.Source}
}
