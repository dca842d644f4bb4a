package ratelimit

import (
	"cmp"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
)

// A Limit allows N events in any window of Span; the Algorithm defines the
// window.
type Limit struct {
	// N is the number of allowed events. 0 refuses all. At most 4,294,967,295,
	// or 65,535 for Exact and InFlight.
	N uint64

	// Span is the length of the window: whole milliseconds, from 1 ms to
	// 10 years. For InFlight it is the longest duration of an event: then it
	// ends by itself.
	Span time.Duration

	// Burst is the largest number allowed at once: the burst of GCRA, the queue
	// of LeakyBucket; at most 4,294,967,295. 0 means N. Other algorithms do not
	// use it.
	Burst uint64

	// Per is the window of Calendar, and Span is then 0. A Calendar limit may
	// also give the period as a Span of 1 s, 1 min, 1 h, 24 h or 7 days. Other
	// algorithms do not use it.
	Per Period

	// AtMost, when not 0, makes N a default: each event may bring an N of its own, up to
	// AtMost, by [Rule.LimitBy] or [RuleLimiter.TakeLimit]. A key has one window for all
	// N: each event is compared with its own N. A record has memory for AtMost. One limit
	// of a rule can have it.
	AtMost uint64 `json:",omitempty"`
}

// A Period is a window of the calendar. Its String is its name, such as "day", or "" if there
// is none.
type Period = limit.Period

// The periods. A week begins on Monday. A day is from midnight to midnight in
// the rule's zone, so it may have 23 or 25 hours, and a month has 28 to 31
// days.
const (
	PerSecond Period = limit.Second
	PerMinute Period = limit.Minute
	PerHour   Period = limit.Hour
	PerDay    Period = limit.Day
	PerWeek   Period = limit.Week
	PerMonth  Period = limit.Month
)

// validate adds the first value that a cannot count to wrong, where l has that name.
func (l Limit) validate(name string, a Algorithm, wrong *invalid.Fields) {
	most, before := maxN(a), len(*wrong)
	wrong.Check(l.N <= most || !a.Known(), name, l.N, "must be at most %d with %s", most, a)
	wrong.Check(l.AtMost <= most, "at_most", l.AtMost, "must be at most %d with %s", most, a)
	wrong.Check(l.AtMost == 0 || l.AtMost >= l.N, "at_most", l.AtMost, "must be at least the limit, %d", l.N)
	wrong.Check(l.AtMost == 0 || l.N > 0 || !a.Bursts(), name, "0 requests", "must be 1 or more with %s where events bring their limit", a)
	wrong.Check(l.Burst <= limit.MaxN || !a.Bursts(), name, nil, "burst %d: must be at most %d", l.Burst, uint64(limit.MaxN))
	if a == Calendar {
		wrong.Check(l.Per == 0 || l.Span == 0, name, nil, "period %s and span %v: must be one of them", l.Per, l.Span)
		wrong.Check(l.period() != 0, name, nil, "span %v: must be 1s, 1m, 1h, 24h, 168h or a period with calendar", l.Span)
	}
	if len(*wrong) == before {
		_, err := limit.New(l.config(a, nil))
		wrong.CheckNil(err, name)
	}
}

// config returns how l is counted by a, in a zone if that is Calendar.
func (l Limit) config(a Algorithm, zone *time.Location) limit.Config {
	c := limit.Config{Algorithm: a, N: l.N, Span: l.Span, Burst: l.Burst, Period: l.Per}
	if a == Calendar {
		c.Span, c.Period, c.Zone = 0, l.period(), zone
	}
	if a.Bursts() {
		c.AtMost = l.AtMost
	}
	return c
}

// period returns the period of a Calendar limit, or 0.
func (l Limit) period() limit.Period { return cmp.Or(l.Per, limit.PeriodOf(l.Span)) }

// Window returns the length of l's window: Span, or the longest that the
// calendar period can be.
func (l Limit) Window() time.Duration { return cmp.Or(l.Span, l.Per.Length()) }

func maxN(a Algorithm) uint64 {
	if a == Exact || a == InFlight {
		return limit.MaxLog
	}
	return limit.MaxN
}

// MaxAllowed returns the largest total cost that algorithm a can allow for one
// key under l in any window (t-span, t], for any arrivals. Tests reach this
// worst case, and none exceeds it.
//
//	Sliding, Exact                   N
//	InFlight                         N under way at any moment
//	TwoBucket, Fixed                 2N - 1
//	GCRA, LeakyBucket                N + Burst - 1
//	Calendar                         2N, in a window no longer than the shortest of its periods
//
// A LeakyBucket allows that many into its queue; no more than N have their turn
// in any window. For a rule with an [Adapt], N is the largest that it reaches.
//
// With AtMost, an event is allowed by Sliding, Exact and InFlight only if the window then
// holds at most the N that this event brought. The other algorithms compare their own
// count with that N; at worst, N is the largest in the window and in the span before it.
//
// The bound holds while the store keeps the key. A memory store whose budget is
// spent may evict a key that has used less than half of its limit, and the key
// then begins at 0: each such eviction within the window allows up to (N+1)/2 - 1
// more (half of Burst for a bucket; none for limits of 1 and 2). Units that
// [RuleLimiter.Refund] and a [Reservation] give back can be allowed again. A
// settlement may charge more than the rest of a limit, since the cost has already
// been used.
func (l Limit) MaxAllowed(a Algorithm) uint64 {
	c := l.config(a, nil)
	return c.MaxAllowed()
}

// MaxLate returns how much longer than its span algorithm a may count an event
// under l. It may refuse by that much longer than Exact, and
// [Decision.RetryAfter] may be that much too long. It is a slot, a sixtieth or a
// 64th of the span, for Sliding with N or AtMost above 128; a span for
// TwoBucket; and 0 for all others.
//
// When the memory store has no budget left for the slots of a key, Sliding with N above
// 128 counts it in two slots of a whole span.
func (l Limit) MaxLate(a Algorithm) time.Duration {
	c := l.config(a, nil)
	c.N = max(c.N, l.AtMost)
	return c.MaxLate()
}
