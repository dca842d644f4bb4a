package api

import "time"

// A HotKey is a key that is hot. Of a value of more than 1,024 bytes it has the
// beginning, the length and the SHA-256.
type HotKey struct {
	Rule string `json:"rule"`
	Key
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero" doc:"how long it stays hot, unless it is still over its threshold then; absent if it is always hot"`
	TTL     Millis    `json:"ttl_ms,omitempty" doc:"the time from now to until, which does not depend on the clock of the client; absent if it is always hot"`
	Lo      uint64    `json:"lo" doc:"the number of its events in the span of the rule is not below"`
	Hi      uint64    `json:"hi,omitempty" doc:"nor above; absent if that is unknown"`
	Changed uint64    `json:"changed" doc:"the version at which its value last changed; 0 if it did not"`
}

// A HotList is the answer of GET /v1/hot.
type HotList struct {
	Hot []HotKey `json:"hot"`
}

// A HotUpdate is what watchers of hot keys receive: first the keys that are hot, as a
// reset, and then what changed. It is the data of the server-sent events of
// GET /v1/hot/watch, and the message of HOT.WATCH.
//
// Each update is for the version that the one before has led to. If From is another
// version, an update was lost: watch again.
type HotUpdate struct {
	Instance string    `json:"instance" doc:"a random id of this start of the server"`
	From     uint64    `json:"from" doc:"the version that the update changes; 0 for a reset"`
	Version  uint64    `json:"version" doc:"the version after the last part of the update"`
	Rule     string    `json:"rule,omitempty" doc:"the only rule that is watched"`
	Reset    bool      `json:"reset" doc:"drop all keys first: hot is the first part of all that are hot"`
	More     bool      `json:"more" doc:"the update goes on in the next message"`
	Hot      []HotKey  `json:"hot" doc:"keys that became hot, or stay hot for longer"`
	Cold     []RuleKey `json:"cold" doc:"keys that are no longer hot"`
	Changed  []RuleKey `json:"changed" doc:"keys whose values changed: they must be loaded again"`
}
