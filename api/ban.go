package api

import "time"

// A Ban is one ban.
type Ban struct {
	Rule string `json:"rule"`
	Key
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Count  uint64    `json:"count" doc:"number of bans that the rule has begun for the key so far"`
	Reason string    `json:"reason"`
	Source string    `json:"source" doc:"rule, or who added it"`
}

// A BanPage is a page of the current bans, the newest first.
type BanPage struct {
	Bans  []Ban  `json:"bans"`
	Total int    `json:"total" doc:"number of all matching bans"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; absent on the last page"`
}

// A BanRequest is the body of POST /v1/bans.
type BanRequest struct {
	Rule string `json:"rule"`
	Key
	For    string `json:"for" doc:"a duration such as 10m or 24h"`
	Reason string `json:"reason,omitempty"`
}

// A BanFilter selects bans. A ban is selected if it satisfies every field that is not
// empty; at least one must be set.
type BanFilter struct {
	Rule    string `json:"rule,omitempty" doc:"the name of the rule"`
	Pattern string `json:"pattern,omitempty" doc:"a glob that matches a value of the key, or all of them joined by tabs; * selects every ban"`
	Network string `json:"network,omitempty" doc:"an address or network, such as 192.0.2.0/24, that contains a value of the key"`
}

// An UnbanRequest is the body of POST /v1/bans/unban: a rule and a key, or a filter.
type UnbanRequest struct {
	BanFilter
	Key
}

// Unbanned has the number of bans that a request ended.
type Unbanned struct {
	Unbanned int `json:"unbanned" doc:"number of bans ended"`
}

// A CrowdSecDecision is a ban as CrowdSec's bouncers read it.
type CrowdSecDecision struct {
	Duration string `json:"duration" doc:"until it ends, such as 3h59m55s; negative if it has ended"`
	ID       int64  `json:"id"`
	Origin   string `json:"origin" doc:"crowdsec for a ban by a rule, cscli for a ban by hand"`
	Scenario string `json:"scenario" doc:"lately/ and the name of the rule"`
	Scope    string `json:"scope" doc:"Ip or Range"`
	Type     string `json:"type" doc:"ban"`
	Value    string `json:"value" doc:"the address or the network"`
}

// CrowdSecDecisions is the answer of GET /v1/decisions: null if there are none, which
// CrowdSec's own bouncers expect.
type CrowdSecDecisions []CrowdSecDecision

// A CrowdSecStream has the changes since the last request of a bouncer.
type CrowdSecStream struct {
	Deleted []CrowdSecDecision `json:"deleted"`
	New     []CrowdSecDecision `json:"new"`
}
