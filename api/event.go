package api

import "time"

// An EventType is the type of an [Event]. Newer servers may have other types.
type EventType string

// The types of events.
const (
	BanStarted   EventType = "ban"   // a ban began, or was added
	BanEnded     EventType = "unban" // a ban was ended by hand
	KeyHot       EventType = "hot"   // a key became hot
	RulesChanged EventType = "rules" // other rules are in force
	RatesTick    EventType = "rates" // a second has passed
)

// An EventList is the body of a webhook request.
type EventList struct {
	Events []Event `json:"events"`
}

// An Event is an event for subscribers. The type determines the fields that are
// set besides Type and Time.
type Event struct {
	Type EventType `json:"type"`
	Time time.Time `json:"time"`
	Ban  *Ban      `json:"ban,omitempty" doc:"of ban"`
	Rule string    `json:"rule,omitempty" doc:"of unban and hot"`
	Key
	Until  time.Time `json:"until,omitzero" doc:"of hot: how long the key stays hot"`
	All    *Totals   `json:"all,omitempty" doc:"of rates: decisions of the last second"`
	Totals *Totals   `json:"totals,omitempty" doc:"of rates: decisions since the server started"`
}

// A FeedOpening is the body of POST /v1/feeds/open.
type FeedOpening struct {
	Feed    string `json:"feed" doc:"the name of the follower, such as the name of its machine: 1 to 255 bytes"`
	Process string `json:"process" doc:"a random text for the process: 1 to 64 letters and digits"`
}

// A Feed is the answer to a FeedOpening. Batches of sessions before this one are rejected.
type Feed struct {
	Session string `json:"session"`
	State   []byte `json:"state" doc:"state of the last batch that was judged; empty if there is none"`
}

// A FeedBatch is the body of POST /v1/feeds/events. It is judged as a whole or not at all, once.
type FeedBatch struct {
	Feed    string        `json:"feed"`
	Session string        `json:"session"`
	Number  uint64        `json:"number" doc:"1 for the first batch of the session, and so on"`
	Events  []byte        `json:"events" doc:"for each event the time in nanoseconds since 1970 (8 bytes, little-endian), the number of fields (a byte), and for each field the length of the name (a byte), the name, the length of the value (a varint) and the value"`
	State   []byte        `json:"state" doc:"position of the follower after these events; it is stored together with their counts"`
	Until   time.Time     `json:"until,omitzero" doc:"events after this time wait at the server for older events, until a batch has a later time or none; if absent, events are judged in the order of the batch"`
	Logs    []FollowedLog `json:"logs" doc:"at most 256"`
}

// A FeedResult is the answer to a [FeedBatch]: the numbers of events that were judged, including
// earlier ones that waited.
type FeedResult struct {
	Events  uint64 `json:"events"`
	Refused uint64 `json:"refused" doc:"events, by limits and bans"`
	Bans    uint64 `json:"bans" doc:"that began"`
}

// Add adds the figures of o.
func (r *FeedResult) Add(o FeedResult) {
	r.Events, r.Refused, r.Bans = r.Events+o.Events, r.Refused+o.Refused, r.Bans+o.Bans
}
