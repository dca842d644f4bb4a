package api

import (
	"math"
	"time"
)

// A Decision is the result for one event.
type Decision struct {
	Allowed     bool   `json:"allowed"`
	Limit       uint64 `json:"limit"`
	Remaining   uint64 `json:"remaining"`
	RetryAfter  Millis `json:"retry_after_ms" doc:"0 when allowed; -1 when no waiting helps"`
	ResetAfter  Millis `json:"reset_after_ms"`
	Rule        string `json:"rule" doc:"the deciding rule; empty when none matched"`
	BannedUntil Millis `json:"banned_until_ms" doc:"since 1970; 0 when no ban refused it"`
	Delay       Millis `json:"delay_ms,omitempty" doc:"how long an allowed event must wait for its turn under a leaky-bucket rule; absent when it need not wait"`
	Missing     string `json:"missing,omitempty" doc:"the field that the event lacks, if the rule refuses it for that"`
	ID          string `json:"id,omitempty" doc:"to settle the reservation, or to report the outcome by; absent unless it was asked for, and of a refusal"`
}

// Millis is a number of milliseconds. A negative one means never.
type Millis int64

// MillisOf returns d in milliseconds, rounded up, and -1 for a negative d and for the longest, which stands for never.
func MillisOf(d time.Duration) Millis {
	if d < 0 || d == math.MaxInt64 {
		return -1
	}
	ms := Millis(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Duration returns m as a Duration, or the longest Duration if m is longer.
func (m Millis) Duration() time.Duration {
	const longest = Millis(1<<63-1) / Millis(time.Millisecond)
	return time.Duration(max(min(m, longest), -longest)) * time.Millisecond
}

// A CheckItem is one event to judge under all rules that match it.
type CheckItem struct {
	Event map[string]string `json:"event,omitzero" doc:"the fields of the event, such as client and path"`
	Cost  *uint64           `json:"cost,omitempty" range:"cost"`

	Outcome *Millis `json:"outcome_ms,omitempty" doc:"asks for an id by which the outcome can be reported for so long: 1 ms to a day; no answer has one if no rule looks at the answer to such a request"`
}

// A CheckRequest is the body of POST /v1/check: one event, or several.
type CheckRequest struct {
	CheckItem
	Events []CheckItem `json:"events,omitempty" doc:"several events, judged in this order"`
}

// An OutcomeItem is the answer to a request: the event has status, size or duration. It has the fields of the request, too, unless
// there is an id of the decision.
type OutcomeItem struct {
	ID    string            `json:"id,omitempty" doc:"of the decision; it is counted once"`
	Event map[string]string `json:"event,omitzero" doc:"status, size or duration, and the fields of the request if there is no id"`
	Cost  *uint64           `json:"cost,omitempty" range:"cost"`
}

// An OutcomeRequest is the body of POST /v1/outcome: one outcome, or several.
type OutcomeRequest struct {
	OutcomeItem
	Events []OutcomeItem `json:"events,omitempty"`
}

// A TakeItem is an event of a key to judge under one rule.
type TakeItem struct {
	Rule string `json:"rule,omitempty"`
	Key
	Cost  *uint64 `json:"cost,omitempty" range:"cost"`
	Limit *uint64 `json:"limit,omitempty" range:"cost" doc:"how many the rule allows this event, instead of its own number; the rule must have at_most, which bounds it"`
}

// A TakeRequest is the body of POST /v1/take: one event of a key, or several.
type TakeRequest struct {
	TakeItem
	Takes []TakeItem `json:"takes,omitempty"`
}

// A PeekRequest is the body of POST /v1/peek: that of check or that of take.
type PeekRequest struct {
	Event map[string]string `json:"event,omitzero"`
	TakeItem
	Events []CheckItem `json:"events,omitempty"`
	Takes  []TakeItem  `json:"takes,omitempty"`
}

// A ReserveEvent is one event to reserve for under all rules that match it.
type ReserveEvent struct {
	CheckItem
	For *Millis `json:"for_ms,omitempty" doc:"for how long it can be settled, 1 ms to a day; a minute if it is left out"`
}

// A ReserveTake is an event of a key to reserve for under one rule.
type ReserveTake struct {
	TakeItem
	For *Millis `json:"for_ms,omitempty" doc:"for how long it can be settled, 1 ms to a day; a minute if it is left out"`
}

// A ReserveRequest is the body of POST /v1/reserve: one event, one event of a key, or several of either.
type ReserveRequest struct {
	Event map[string]string `json:"event,omitzero"`
	ReserveTake
	Events []ReserveEvent `json:"events,omitempty"`
	Takes  []ReserveTake  `json:"takes,omitempty"`
}

// A Settlement says what the event of a reservation has cost.
type Settlement struct {
	ID   string  `json:"id,omitempty"`
	Cost *uint64 `json:"cost,omitempty" range:"actual" doc:"what it has cost: 0 or more, also more than was reserved"`
}

// A SettleRequest is the body of POST /v1/settle: one settlement, or several.
type SettleRequest struct {
	Settlement
	Settlements []Settlement `json:"settlements,omitempty"`
}

// Settled is the answer about one settlement.
type Settled struct {
	Settled bool `json:"settled" doc:"false if it was settled before: then nothing has changed"`
}

// A SettleResult is what came of one settlement of several, or why it was not done.
type SettleResult struct {
	*Settled
	Error *Failure `json:"error,omitempty"`
}

// SettleResults is the answers about several settlements, in the order of the request.
type SettleResults struct {
	Settlements []SettleResult `json:"settlements"`
}

// A ChargeRequest is the body of POST /v1/charge: a cost of a key under a rule, or several.
type ChargeRequest struct {
	ChargeItem
	Charges []ChargeItem `json:"charges,omitempty"`
}

// A ChargeItem is a cost of a key under a rule.
type ChargeItem struct {
	Rule string `json:"rule,omitempty"`
	Key
	Cost *uint64 `json:"cost,omitempty" range:"cost"`
}

// Charged is what came of several charges, in the order of the request: an empty object for each that was made.
type Charged struct {
	Charges []ChargeResult `json:"charges,omitempty"`
}

// A ChargeResult is empty, or why a charge was not made.
type ChargeResult struct {
	Error *Failure `json:"error,omitempty"`
}

// A Result is a decision, or why there is none.
type Result struct {
	*Decision
	Error *Failure `json:"error,omitempty"`
}

// Results is the decisions of a request with several events, in its order.
type Results struct {
	Decisions []Result `json:"decisions"`
}

// A Failure takes the place of a decision in a list.
type Failure struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
}

// A RefundRequest is the body of POST /v1/refund and of POST /v1/release.
type RefundRequest struct {
	Rule string `json:"rule"`
	Key
	N *uint64 `json:"n,omitempty" range:"cost" doc:"how many; 1 if it is left out"`
}

// Refunded is the answer of POST /v1/refund.
type Refunded struct {
	Refunded uint64 `json:"refunded" doc:"how much was refunded: no more than was used"`
}

// Released is the answer of POST /v1/release.
type Released struct {
	Released uint64 `json:"released" doc:"how many were ended: no more than were under way"`
}

// A RuleKey is a key under a rule: the body of POST /v1/reset.
type RuleKey struct {
	Rule string `json:"rule"`
	Key
}

// A ThrottleRequest is the body of POST /v1/throttle: an event of a key, with the limit
// to judge it by.
type ThrottleRequest struct {
	Key      string  `json:"key"`
	Burst    uint64  `json:"burst" doc:"how many more at once"`
	Count    uint64  `json:"count"`
	Period   Millis  `json:"period_ms"`
	Quantity *uint64 `json:"quantity,omitempty"`
}

// Throttled is the answer of POST /v1/throttle.
type Throttled struct {
	Allowed    bool   `json:"allowed"`
	Limit      uint64 `json:"limit"`
	Remaining  uint64 `json:"remaining"`
	RetryAfter Millis `json:"retry_after_ms"`
	ResetAfter Millis `json:"reset_after_ms"`
}
