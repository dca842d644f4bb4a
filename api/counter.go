package api

import "time"

// A Counter is one counter.
type Counter struct {
	Name     string   `json:"name"`
	Fields   []string `json:"fields" doc:"of its key"`
	Spans    []Millis `json:"spans_ms" doc:"of its windows"`
	Dynamic  bool     `json:"dynamic" doc:"created by adding to it, not by the rules file"`
	Sentence string   `json:"sentence"`
	Keys     int      `json:"keys"`
	Bytes    int64    `json:"bytes"`
}

// A CounterList is the answer of GET /v1/counters.
type CounterList struct {
	Counters []Counter `json:"counters"`
}

// An AddRequest is the body of POST /v1/counters/{name}/add.
type AddRequest struct {
	Key
	N *uint64 `json:"n,omitempty" range:"cost" doc:"how many; 1 if it is left out"`
}

// A Count is how many events a key had in a span: the true count lies in [Lo, Hi].
type Count struct {
	Lo       uint64 `json:"lo" doc:"the true count is not below"`
	Hi       uint64 `json:"hi" doc:"nor above"`
	Estimate uint64 `json:"estimate" doc:"between lo and hi: the figure to show"`
}

// A KeyRate is the rate of a key.
type KeyRate struct {
	PerSecond float64 `json:"per_second"`
}

// A KeyCount is a key with its count.
type KeyCount struct {
	Key
	Count
	Peak      float64 `json:"peak_per_second" doc:"events per second in the busiest tenth of the counter's window that holds the span"`
	Refused   uint64  `json:"refused,omitempty" doc:"of a span of at most an hour, about how many events the rule refused_by refused"`
	RefusedBy string  `json:"refused_by,omitempty" doc:"the limit or ban with the counter's key that refused the key most; left out if none did"`
}

// A TopList is the answer of GET /v1/counters/{name}/top.
type TopList struct {
	Top []KeyCount `json:"top"`
}

// A RefusedKey is a key that a rule has refused, with the count of refusals.
type RefusedKey struct {
	Rule string `json:"rule"`
	Key
	Count
	PerSecond   float64   `json:"per_second" doc:"the estimate divided by the span"`
	BannedUntil time.Time `json:"banned_until,omitzero" doc:"by the rule; absent if it does not ban the key"`
}

// A RefusedList is the answer of GET /v1/refused.
type RefusedList struct {
	Refused []RefusedKey `json:"refused"`
}

// A KeyReport is what a server knows about one key.
type KeyReport struct {
	Fields []string `json:"fields"`
	Key
	Counters []KeyWindow    `json:"counters"`
	Rules    []KeyDecision  `json:"rules"`
	Bans     []Ban          `json:"bans"`
	Hot      []HotKeyReport `json:"hot" doc:"under each hot rule of these fields"`
}

// A KeyWindow is one window of a counter for a key. It begins in its first slot, which
// counts in Hi and not in Lo, unless it begins between two slots. So the slots add up to Hi.
type KeyWindow struct {
	Counter string `json:"counter"`
	Span    Millis `json:"span_ms"`
	Count
	Slots []Slot `json:"slots" doc:"all that have a part in the window, the oldest first; the window begins in the first, which counts in hi alone: they add up to hi"`
}

// A Slot is one slot of a window.
type Slot struct {
	Start time.Time `json:"start"`
	Count uint64    `json:"count"`
}

// A KeyDecision is what a rule would decide about the key's next event.
type KeyDecision struct {
	Rule     string   `json:"rule"`
	Decision Decision `json:"decision" doc:"what the rule would decide about the key's next event"`
}
