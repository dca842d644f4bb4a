package api

import "time"

// An EventType says what an [Event] is about. Newer servers may have other types.
type EventType string

// The types of events.
const (
	BanStarted   EventType = "ban"   // a ban began, or was added
	BanEnded     EventType = "unban" // a ban was ended by hand
	KeyHot       EventType = "hot"   // a key became hot
	RulesChanged EventType = "rules" // other rules are in force
	RatesTick    EventType = "rates" // a second has passed
)

// An EventList is the body of a request of the webhook.
type EventList struct {
	Events []Event `json:"events"`
}

// An Event is what subscribers receive. Which fields are set besides Type and Time
// depends on the type.
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
