package follow

import (
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/match"
)

// manyClients is how many clients that are no addresses are reported, if no other was seen.
const manyClients = 20

// A clientCheck finds out that no client of a log is an address, as where another field stands in
// its place.
type clientCheck struct {
	others   int    // events with another client
	last     string // one of them
	finished bool   // an address was seen, or it was reported
}

// look takes an event.
func (c *clientCheck) look(ev *match.Event) {
	if c.finished {
		return
	}
	client := ev.Get(match.Client)
	if len(client) == 0 {
		return
	}
	if _, c.finished = address.Parse(string(client)); !c.finished {
		c.others++
		c.last = string(client)
	}
}

// checkClients logs once that no client is an address: what bans them is enforced nowhere.
func (r *logReader) checkClients() {
	c := &r.clients
	if c.finished || c.others < manyClients {
		return
	}
	c.finished = true
	r.log.Warn("no client in the log is an address, so bans of clients are not enforced: name the format of the log after the file, as in FILE=clf, or check its first field",
		"file", r.path, "format", r.format.String(), "client", c.last)
}
