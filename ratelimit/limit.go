package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A Limit allows N events in any window of Span; what a window is depends on
// the [Algorithm].
type Limit struct {
	// N is how many are allowed. 0 refuses all. At most MaxSliding, or
	// MaxExact for Exact and InFlight.
	N uint64

	// Span is the length of the window: whole milliseconds, from 1 ms to
	// MaxSpan. For InFlight it is the longest that an event is believed to
	// be under way.
	Span time.Duration

	// Burst is how many come at once at most: the burst of GCRA, the places of
	// a LeakyBucket; at most MaxSliding. 0 means N. No other algorithm has it.
	Burst uint64

	// Per is the window of Calendar, and Span is then 0. A Calendar limit
	// may also give a Span of 1 s, 1 min, 1 h, 24 h or 7 days for the period
	// of that name. No other algorithm has it.
	Per Period

	// AtMost, when not 0, makes N a default: each event may bring an N of its own, up to
	// AtMost, by [Rule.LimitBy] or [RuleLimiter.TakeLimit]. A key has one window, whatever
	// N its events bring: each event is judged by its own N, with all that the window
	// holds. A record has memory for AtMost. One limit of a rule can have it.
	AtMost uint64 `json:",omitempty"`
}

// A Period is a window of the calendar.
type Period uint8

// The periods. A week begins on Monday. A day is from midnight to midnight in
// the rule's zone, whatever a clock change makes of it, and a month is as long
// as it is.
const (
	PerSecond = Period(limit.Second)
	PerMinute = Period(limit.Minute)
	PerHour   = Period(limit.Hour)
	PerDay    = Period(limit.Day)
	PerWeek   = Period(limit.Week)
	PerMonth  = Period(limit.Month)
)

// String returns the period's name, such as "day", or "" if there is none.
func (p Period) String() string {
	if p == 0 {
		return ""
	}
	return limit.Period(p).String()
}

// MaxSpan is the longest span of a limit or a ban: ten years.
const MaxSpan = 10 * 365 * 24 * time.Hour

// Validate returns an error that says which value of l algorithm a cannot count, and
// what it must be.
func (l Limit) Validate(a Algorithm) error {
	switch {
	case a < numAlgorithms && l.N > maxN(a):
		return fmt.Errorf("limit: %d: must be at most %d with %s", l.N, maxN(a), a)
	case l.AtMost != 0 && (l.AtMost < l.N || l.AtMost > maxN(a)):
		return fmt.Errorf("at most: %d: must be the limit, %d, or more, and at most %d with %s", l.AtMost, l.N, maxN(a), a)
	case l.AtMost != 0 && l.N == 0 && a.bursts():
		return fmt.Errorf("limit: 0 requests: must be 1 or more with %s where events bring their limit", a)
	case l.Burst > MaxSliding && a.bursts():
		return fmt.Errorf("burst: %d: must be at most %d", l.Burst, uint64(MaxSliding))
	case a == Calendar && l.Per != 0 && l.Span != 0:
		return fmt.Errorf("limit: period %s and span %v: must be one of them", l.Per, l.Span)
	case a == Calendar && l.period() == 0:
		return fmt.Errorf("span: %v: must be 1s, 1m, 1h, 24h, 168h or a period with calendar", l.Span)
	}
	_, err := limit.New(l.config(a, nil))
	return err
}

// config returns how l is counted by a, in a zone if that is Calendar.
func (l Limit) config(a Algorithm, zone *time.Location) limit.Config {
	c := limit.Config{Algorithm: limit.Algorithm(a), N: l.N, Span: l.Span, Burst: l.Burst, Period: limit.Period(l.Per)}
	if a == Calendar {
		c.Span, c.Period, c.Zone = 0, l.period(), zone
	}
	if a.bursts() {
		c.AtMost = l.AtMost
	}
	return c
}

// period returns the period of a Calendar limit, or 0.
func (l Limit) period() limit.Period { return cmp.Or(limit.Period(l.Per), limit.PeriodOf(l.Span)) }

// Window returns the length of l's window, for what has to be told as a
// duration: Span, or the longest that the calendar's period can be.
func (l Limit) Window() time.Duration { return cmp.Or(l.Span, limit.Period(l.Per).Length()) }

func maxN(a Algorithm) uint64 {
	if a == Exact || a == InFlight {
		return MaxExact
	}
	return MaxSliding
}

// MaxAllowed returns the largest total cost that algorithm a can allow for one
// key under l in any window (t-span, t], whatever arrives at whatever times: the
// worst case, which tests reach and never see exceeded.
//
//	Sliding, Exact                   N
//	InFlight                         N under way at any moment
//	TwoBucket, Fixed                 2N - 1
//	GCRA, LeakyBucket                N + Burst - 1
//	Calendar                         2N, in a window no longer than the shortest of its periods
//
// A LeakyBucket allows that many into its queue; no more than N have their turn
// in any window. For a rule with an [Adapt], N is the largest that it comes to.
//
// With AtMost, an event is allowed by Sliding, Exact and InFlight only if the window then
// holds at most the N that this event brought. The other algorithms hold what their own
// count says to that N; at worst, N is then the largest of the window and of the span before.
//
// It holds while the store keeps the key. A memory store whose budget is spent may
// evict one that has used less than half of its limit, which then begins at 0:
// with every such eviction within the window, up to (N+1)/2 - 1 more are allowed
// (of a bucket half the Burst; of any limit up to 2 nothing). What [RuleLimiter.Refund]
// and a [Reservation] give back can be allowed once more. A settlement may charge
// more than a limit has left, for it is about what has already been used.
func (l Limit) MaxAllowed(a Algorithm) uint64 {
	c := l.config(a, nil)
	return c.MaxAllowed()
}

// MaxLate returns by how much longer algorithm a may count an event under l than
// its span: so much longer than Exact it may refuse, and so much longer than
// needed [Decision.RetryAfter] may be. It is a slot, a sixtieth of the span or a
// 64th, for Sliding with N or AtMost above 128; a span for TwoBucket; and 0 for all others.
//
// When the memory store has no budget left for the slots of a key, Sliding with N above
// 128 counts it in two slots of a whole span.
func (l Limit) MaxLate(a Algorithm) time.Duration {
	c := l.config(a, nil)
	c.N = max(c.N, l.AtMost)
	return c.MaxLate()
}
