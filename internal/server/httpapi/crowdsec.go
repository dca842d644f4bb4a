package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/enforce"
)

// decisionsPath is that of CrowdSec's local API, and of the paths below it.
const decisionsPath = "/v1/decisions"

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

// streamDecisions answers a bouncer with what changed since it asked last. Bouncers are told
// apart by their token, address and program.
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
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.out = append(c.out[:0], b...)
	return c.send(http.StatusOK, jsonType)
}
