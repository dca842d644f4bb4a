package httpapi

import (
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

// A decision is a [ratelimit.Decision] as the API tells it. Times are in whole
// milliseconds, rounded up: who waits as told has waited long enough.
type decision struct {
	Allowed     bool   `json:"allowed"`
	Limit       uint64 `json:"limit"`
	Remaining   uint64 `json:"remaining"`
	RetryAfter  int64  `json:"retry_after_ms" doc:"0 when allowed; -1 when no waiting helps"`
	ResetAfter  int64  `json:"reset_after_ms"`
	Rule        string `json:"rule" doc:"the deciding rule; empty when none matched"`
	BannedUntil int64  `json:"banned_until_ms" doc:"since 1970; 0 when no ban refused it"`
	Delay       int64  `json:"delay_ms,omitempty" doc:"how long an admitted event has to wait for its turn under a leaky-bucket rule; absent when it need not wait"`
}

func decisionOf(d *ratelimit.Decision) decision {
	return decision{d.Allowed, d.Limit, d.Remaining, waitMillis(d.RetryAfter), waitMillis(d.ResetAfter), d.Rule, engine.EpochMillis(d.BannedUntil), waitMillis(d.Delay)}
}

// appendDecision appends d as JSON.
func appendDecision(dst []byte, d *ratelimit.Decision) []byte {
	if d.Allowed {
		dst = append(dst, `{"allowed":true,"limit":`...)
	} else {
		dst = append(dst, `{"allowed":false,"limit":`...)
	}
	dst = strconv.AppendUint(dst, d.Limit, 10)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendUint(dst, d.Remaining, 10)
	dst = append(dst, `,"retry_after_ms":`...)
	dst = strconv.AppendInt(dst, waitMillis(d.RetryAfter), 10)
	dst = append(dst, `,"reset_after_ms":`...)
	dst = strconv.AppendInt(dst, waitMillis(d.ResetAfter), 10)
	dst = append(dst, `,"rule":`...)
	dst = appendText(dst, d.Rule)
	dst = append(dst, `,"banned_until_ms":`...)
	dst = strconv.AppendInt(dst, engine.EpochMillis(d.BannedUntil), 10)
	if d.Delay > 0 {
		dst = append(dst, `,"delay_ms":`...)
		dst = strconv.AppendInt(dst, waitMillis(d.Delay), 10)
	}
	return append(dst, '}')
}

// waitMillis returns d in milliseconds, rounded up, and -1 for [ratelimit.Never].
func waitMillis(d time.Duration) int64 { return engine.RoundUp(d, time.Millisecond) }
