package engine

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// DecisionOf returns d as the API has it.
func DecisionOf(d *ratelimit.Decision) api.Decision {
	return api.Decision{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: api.MillisOf(d.RetryAfter), ResetAfter: api.MillisOf(d.ResetAfter),
		Rule: d.Rule, BannedUntil: api.Millis(EpochMillis(d.BannedUntil)), Delay: api.MillisOf(d.Delay), Missing: d.Missing,
	}
}

// EpochMillis returns t in milliseconds since 1970, rounded up, and 0 for the zero time.
func EpochMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%1e6 > 0 {
		ms++
	}
	return ms
}
