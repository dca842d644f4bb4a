package httpapi

import (
	"strconv"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

// appendDecision appends d as JSON: what encoding/json makes of engine.DecisionOf, in a
// fraction of the time.
func appendDecision(dst []byte, decision *ratelimit.Decision) []byte {
	d := engine.DecisionOf(decision)
	dst = append(dst, `{"allowed":`...)
	dst = strconv.AppendBool(dst, d.Allowed)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendUint(dst, d.Limit, 10)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendUint(dst, d.Remaining, 10)
	dst = append(dst, `,"retry_after_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.RetryAfter), 10)
	dst = append(dst, `,"reset_after_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.ResetAfter), 10)
	dst = append(dst, `,"rule":`...)
	dst = appendText(dst, d.Rule)
	dst = append(dst, `,"banned_until_ms":`...)
	dst = strconv.AppendInt(dst, int64(d.BannedUntil), 10)
	if d.Delay > 0 {
		dst = append(dst, `,"delay_ms":`...)
		dst = strconv.AppendInt(dst, int64(d.Delay), 10)
	}
	return append(dst, '}')
}
