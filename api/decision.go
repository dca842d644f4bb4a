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
	RetryAfter  Millis `json:"retry_after_ms" doc:"0 if allowed; -1 if waiting does not help"`
	ResetAfter  Millis `json:"reset_after_ms"`
	Rule        string `json:"rule" doc:"the deciding rule; empty if none matched"`
	BannedUntil Millis `json:"banned_until_ms" doc:"since 1970; 0 if no ban refused it"`
	Delay       Millis `json:"delay_ms,omitempty" doc:"time that an allowed event must wait for its turn under a leaky-bucket rule; absent if it need not wait"`
	Missing     string `json:"missing,omitempty" doc:"the field that the event lacks, if the rule refuses it for that"`
	ID          string `json:"id,omitempty" doc:"id for settling the reservation or reporting the outcome; absent unless requested, and in a refusal"`
}

// Millis is a number of milliseconds. A negative one means never.
type Millis int64

// MillisOf returns d in milliseconds, rounded up, and -1 for a negative d and for the longest,
// which means never.
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

	Outcome *Millis `json:"outcome_ms,omitempty" doc:"requests an id for reporting the outcome within this time: 1 ms to a day; absent from the answer if no rule counts the outcome"`
}

// A CheckRequest is the body of POST /v1/check: one event, or several.
type CheckRequest struct {
	CheckItem
	Events []CheckItem `json:"events,omitempty" doc:"several events, judged in this order"`
}

// An OutcomeItem is the answer to a request: the event has status, size or duration, and without an
// id of the decision also the fields of the request.
type OutcomeItem struct {
	ID    string            `json:"id,omitempty" doc:"id of the decision; it is counted once"`
	Event map[string]string `json:"event,omitzero" doc:"status, size or duration, and without an id the fields of the request"`
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
	Limit *uint64 `json:"limit,omitempty" range:"cost" doc:"the limit for this event, instead of the rule's; the rule must have at_most, which bounds it"`
}

// A TakeRequest is the body of POST /v1/take: one event of a key, or several.
type TakeRequest struct {
	TakeItem
	Takes []TakeItem `json:"takes,omitempty"`
}

// A PeekRequest is the body of POST /v1/peek: the body of check or of take.
type PeekRequest struct {
	Event map[string]string `json:"event,omitzero"`
	TakeItem
	Events []CheckItem `json:"events,omitempty"`
	Takes  []TakeItem  `json:"takes,omitempty"`
}

// A ReserveEvent is one event to reserve under all rules that match it.
type ReserveEvent struct {
	CheckItem
	For *Millis `json:"for_ms,omitempty" doc:"time within which it can be settled, 1 ms to a day; a minute if absent"`
}

// A ReserveTake is an event of a key to reserve under one rule.
type ReserveTake struct {
	TakeItem
	For *Millis `json:"for_ms,omitempty" doc:"time within which it can be settled, 1 ms to a day; a minute if absent"`
}

// A ReserveRequest is the body of POST /v1/reserve: one event, one event of a key, or several of either.
type ReserveRequest struct {
	Event map[string]string `json:"event,omitzero"`
	ReserveTake
	Events []ReserveEvent `json:"events,omitempty"`
	Takes  []ReserveTake  `json:"takes,omitempty"`
}

// A Settlement has the actual cost of a reservation.
type Settlement struct {
	ID   string  `json:"id,omitempty"`
	Cost *uint64 `json:"cost,omitempty" range:"actual" doc:"the actual cost: 0 or more, also more than reserved"`
}

// A SettleRequest is the body of POST /v1/settle: one settlement, or several.
type SettleRequest struct {
	Settlement
	Settlements []Settlement `json:"settlements,omitempty"`
}

// Settled is the answer about one settlement.
type Settled struct {
	Settled bool `json:"settled" doc:"false if it was settled before; nothing has changed then"`
}

// A SettleResult is the result or the error of one of several settlements.
type SettleResult struct {
	*Settled
	Error *Failure `json:"error,omitempty"`
}

// SettleResults has the results of several settlements, in the order of the request.
type SettleResults struct {
	Settlements []SettleResult `json:"settlements"`
}

// A ChargeRequest is the body of POST /v1/charge: a cost for a key under a rule, or
// several.
type ChargeRequest struct {
	ChargeItem
	Charges []ChargeItem `json:"charges,omitempty"`
}

// A ChargeItem is a cost for a key under a rule.
type ChargeItem struct {
	Rule string `json:"rule,omitempty"`
	Key
	Cost *uint64 `json:"cost,omitempty" range:"cost"`
}

// Charged has the results of several charges, in the order of the request: an empty object for each
// success.
type Charged struct {
	Charges []ChargeResult `json:"charges,omitempty"`
}

// A ChargeResult is empty, or has the error of a charge.
type ChargeResult struct {
	Error *Failure `json:"error,omitempty"`
}

// A Result is a decision or an error.
type Result struct {
	*Decision
	Error *Failure `json:"error,omitempty"`
}

// Results has the decisions about several events, in the order of the request.
type Results struct {
	Decisions []Result `json:"decisions"`
}

// A Failure replaces a decision in a list.
type Failure struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
}

// A RefundRequest is the body of POST /v1/refund and of POST /v1/release.
type RefundRequest struct {
	Rule string `json:"rule"`
	Key
	N *uint64 `json:"n,omitempty" range:"cost" doc:"number of events; 1 if absent"`
}

// Refunded is the answer of POST /v1/refund.
type Refunded struct {
	Refunded uint64 `json:"refunded" doc:"units given back: at most those used"`
}

// Released is the answer of POST /v1/release.
type Released struct {
	Released uint64 `json:"released" doc:"events ended: at most those in flight"`
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
	Burst    uint64  `json:"burst" doc:"additional events at once"`
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
