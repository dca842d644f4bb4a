package httpapi

import (
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

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
	dst = strconv.AppendInt(dst, millis(d.RetryAfter), 10)
	dst = append(dst, `,"reset_after_ms":`...)
	dst = strconv.AppendInt(dst, millis(d.ResetAfter), 10)
	dst = append(dst, `,"rule":`...)
	dst = appendText(dst, d.Rule)
	dst = append(dst, `,"banned_until_ms":`...)
	dst = strconv.AppendInt(dst, engine.EpochMillis(d.BannedUntil), 10)
	if d.Delay > 0 {
		dst = append(dst, `,"delay_ms":`...)
		dst = strconv.AppendInt(dst, millis(d.Delay), 10)
	}
	return append(dst, '}')
}

// millis returns d in milliseconds, rounded up, and -1 for [ratelimit.Never].
func millis(d time.Duration) int64 { return int64(api.MillisOf(d)) }
