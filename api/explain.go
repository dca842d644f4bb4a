package api

import "time"

// An Explanation is the answer of GET /v1/explain: the recently refused keys, with the
// reasons.
type Explanation struct {
	Values   []string  `json:"values" doc:"that each of the keys has"`
	Since    time.Time `json:"since" doc:"all keys that were refused after this time are listed; keys that were last refused before may be missing"`
	Refusals []Refusal `json:"refusals" doc:"the refused keys with these values, each once per rule, the newest first; at most 100"`
}

// A Refusal has the refusals of one key by one rule, and the rule's current decision.
type Refusal struct {
	Rule     string   `json:"rule"`
	Sentence string   `json:"sentence" doc:"meaning of the rule"`
	Fields   []string `json:"fields"`
	Key
	Count   uint64       `json:"count" doc:"number of refusals of the key by the rule from first to last"`
	First   time.Time    `json:"first"`
	Last    time.Time    `json:"last"`
	Example RefusedEvent `json:"example" doc:"one of these events, at most a second before last"`
	Now     *Decision    `json:"now,omitempty" doc:"decision of the rule about the key's next event"`
	Ban     *Ban         `json:"ban,omitempty" doc:"the key's ban under the rule; absent if not banned"`
}

// A RefusedEvent is an event that was refused.
type RefusedEvent struct {
	Time     time.Time `json:"time"`
	Method   string    `json:"method,omitempty" doc:"absent, like host and path, if the event lacked it"`
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty" doc:"without the query; cut if long"`
	Decision Decision  `json:"decision"`
}
