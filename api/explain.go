package api

import "time"

// An Explanation is the answer of GET /v1/explain: which keys were refused lately, and why.
type Explanation struct {
	Values   []string  `json:"values" doc:"that each of the keys has"`
	Since    time.Time `json:"since" doc:"keys that were refused after it are all listed; of keys that were last refused before, some may be missing"`
	Refusals []Refusal `json:"refusals" doc:"the keys with these values that were refused, each once for a rule, those refused last first; at most 100"`
}

// A Refusal says how a rule refused one key, and what it would decide now. A key that is
// refused again and again is one Refusal.
type Refusal struct {
	Rule     string   `json:"rule"`
	Sentence string   `json:"sentence" doc:"what the rule means"`
	Fields   []string `json:"fields"`
	Key
	Count   uint64       `json:"count" doc:"how often the rule refused the key from first to last"`
	First   time.Time    `json:"first"`
	Last    time.Time    `json:"last"`
	Example RefusedEvent `json:"example" doc:"one of these events, refused at most a second before last"`
	Now     *Decision    `json:"now,omitempty" doc:"what the rule would decide about the key's next event"`
	Ban     *Ban         `json:"ban,omitempty" doc:"the ban of the key under the rule; absent if it is not banned"`
}

// A RefusedEvent is an event that was refused.
type RefusedEvent struct {
	Time     time.Time `json:"time"`
	Method   string    `json:"method,omitempty" doc:"absent, as host and path are, if the event did not have it"`
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty" doc:"without its query; a long one is cut"`
	Decision Decision  `json:"decision"`
}
