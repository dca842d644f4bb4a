package api

// A CrowdSecDecision is a ban as CrowdSec's bouncers read it.
type CrowdSecDecision struct {
	Duration string `json:"duration" doc:"until it ends, such as 3h59m55s; negative if it has ended"`
	ID       int64  `json:"id"`
	Origin   string `json:"origin" doc:"crowdsec for a ban of a rule, cscli for one by hand"`
	Scenario string `json:"scenario" doc:"lately/ and the name of the rule"`
	Scope    string `json:"scope" doc:"Ip or Range"`
	Type     string `json:"type" doc:"ban"`
	Value    string `json:"value" doc:"the address or the network"`
}

// CrowdSecDecisions is the answer of GET /v1/decisions: null if there are none, which
// CrowdSec's own bouncers expect.
type CrowdSecDecisions []CrowdSecDecision

// A CrowdSecStream is what changed since a bouncer asked last.
type CrowdSecStream struct {
	Deleted []CrowdSecDecision `json:"deleted"`
	New     []CrowdSecDecision `json:"new"`
}
