package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/enforce"
)

// decisionsPath is the path of CrowdSec's local API for decisions.
const decisionsPath = "/v1/decisions"

// decisionFilters are the parameters of both routes for bouncers, which may send others.
var decisionFilters = []parameter{
	{"scopes", "only of these scopes, with commas between them", "ip,range", false},
	{"origins", "only of these origins: crowdsec for bans of rules, cscli for bans by hand", "crowdsec", false},
	{"scenarios_containing", "only of rules with one of these texts in lately/ and their name", "login", false},
	{"scenarios_not_containing", "only of rules without them", "login", false},
}

// bouncerRoutes returns the routes for bouncers of CrowdSec.
func bouncerRoutes() []route {
	return []route{
		{"GET", decisionsPath, access.Read, handler{serve: listDecisions, out: api.CrowdSecDecisions{}}, "decisions", "The bans in force as decisions of CrowdSec, whose bouncers ask here with X-Api-Key: TOKEN", slices.Concat([]parameter{
			{"ip", "only those about this address or around it", "203.0.113.9", false},
			{"range", "only those around this network", "203.0.113.0/24", false},
			{"contains", "false for those in the address or network instead", "false", false},
			{"scope", "Ip or Range", "Ip", false},
			{"value", "only those of this address or network", "203.0.113.9", false},
			{"type", "ban, which all are", "ban", false},
		}, decisionFilters)},
		{"GET", decisionsPath + "/stream", access.Read, handler{serve: streamDecisions, out: api.CrowdSecStream{}}, "decisionStream", "Changes of the decisions since the last request of this bouncer", slices.Concat([]parameter{
			{"startup", "true for all decisions", "true", false},
		}, decisionFilters)},
	}
}

// bouncer reports whether the requests of t come from CrowdSec's bouncers: their queries may
// have parameters of later versions, and their token is in X-Api-Key.
func (t *route) bouncer() bool { return strings.HasPrefix(t.path, decisionsPath) }

// errNoBouncers answers bouncers of a server that has none.
var errNoBouncers = problemf(http.StatusNotFound, api.BadArg, "CrowdSec's bouncers are not answered here: must be switched on with the setting crowdsec")

// crowdSec returns what answers bouncers, or an error.
func (c *call) crowdSec() (*enforce.CrowdSec, error) {
	if e := c.s.config.Enforcer; e != nil && e.CrowdSec != nil {
		return e.CrowdSec, nil
	}
	return nil, errNoBouncers
}

func listDecisions(c *call) error {
	crowdSec, err := c.crowdSec()
	if err != nil {
		return err
	}
	list, err := crowdSec.Decisions(c.query)
	if err != nil {
		return badArg("query: %s", clip(err.Error()))
	}
	return c.bare(list)
}

// streamDecisions answers a bouncer with what changed since it asked last. A bouncer is identified
// by its token, address and program.
func streamDecisions(c *call) error {
	crowdSec, err := c.crowdSec()
	if err != nil {
		return err
	}
	name := strings.Join([]string{c.Name, access.PeerName(c.peer()), clip(c.r.UserAgent())}, " ")
	stream, sent, err := crowdSec.Stream(name, c.query)
	if err != nil {
		return badArg("query: %s", clip(err.Error()))
	}
	if err := c.bare(stream); err != nil {
		return err
	}
	if c.r.Method != http.MethodHead {
		sent()
	}
	return nil
}

// bare sends v as JSON without a line break at the end: the bouncer of nginx compares an
// answer with "null".
func (c *call) bare(v any) error {
	b, _ := json.Marshal(v) // texts and numbers have no errors
	c.out = append(c.out[:0], b...)
	return c.send(http.StatusOK, jsonType)
}
