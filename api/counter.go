package api

import "time"

// A Counter is one counter.
type Counter struct {
	Name     string   `json:"name"`
	Fields   []string `json:"fields" doc:"of the key"`
	Spans    []Millis `json:"spans_ms" doc:"of the windows"`
	Dynamic  bool     `json:"dynamic" doc:"created by an add, not by the rules file"`
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
	N *uint64 `json:"n,omitempty" range:"cost" doc:"number of events; 1 if absent"`
}

// A Count has the bounds of a key's number of events in a span: the true count
// lies in [Lo, Hi].
type Count struct {
	Lo       uint64 `json:"lo" doc:"lower bound of the true count"`
	Hi       uint64 `json:"hi" doc:"upper bound of the true count"`
	Estimate uint64 `json:"estimate" doc:"between lo and hi: the figure to display"`
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
	Refused   uint64  `json:"refused,omitempty" doc:"for a span of at most an hour, the approximate number of events that the rule refused_by refused"`
	RefusedBy string  `json:"refused_by,omitempty" doc:"the limit or ban with the counter's key that refused the key most; absent if none did"`
}

// A TopList is the answer of GET /v1/counters/{name}/top.
type TopList struct {
	Top []KeyCount `json:"top"`
}

// A RefusedKey is a key with the number of refusals by a rule.
type RefusedKey struct {
	Rule string `json:"rule"`
	Key
	Count
	PerSecond   float64   `json:"per_second" doc:"the estimate divided by the span"`
	BannedUntil time.Time `json:"banned_until,omitzero" doc:"end of the key's ban by the rule; absent if not banned"`
}

// A RefusedList is the answer of GET /v1/refused.
type RefusedList struct {
	Refused []RefusedKey `json:"refused"`
}

// A KeyReport is the state of one key on a server.
type KeyReport struct {
	Fields []string `json:"fields"`
	Key
	Counters []KeyWindow    `json:"counters"`
	Rules    []KeyDecision  `json:"rules"`
	Bans     []Ban          `json:"bans"`
	Hot      []HotKeyReport `json:"hot" doc:"under each hot rule of these fields"`
}

// A KeyWindow is one window of a counter for a key. The slots add up to Hi. The window
// begins in its first slot, which Lo leaves out, or between two slots.
type KeyWindow struct {
	Counter string `json:"counter"`
	Span    Millis `json:"span_ms"`
	Count
	Slots []Slot `json:"slots" doc:"the slots that overlap the window, oldest first; they add up to hi, and lo leaves out the first, in which the window begins"`
}

// A Slot is one slot of a window.
type Slot struct {
	Start time.Time `json:"start"`
	Count uint64    `json:"count"`
}

// A KeyDecision is the decision of a rule about the key's next event.
type KeyDecision struct {
	Rule     string   `json:"rule"`
	Decision Decision `json:"decision" doc:"decision of the rule about the key's next event"`
}
