package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/lately-go/lately/internal/server/listen"
)

// demoEvents is KeepEvents of a demo by default: some minutes of its traffic.
const demoEvents = 4 * mib

// validDemo sets the defaults of a demo, or returns an error: made-up clients must not be
// counted, banned and dropped beside real ones.
func (c *Config) validDemo() error {
	if !c.Demo {
		return nil
	}
	c.KeepEvents = cmp.Or(c.KeepEvents, demoEvents)
	for _, other := range []struct {
		name string
		set  bool
	}{
		{"rules", len(c.RulesFiles) > 0},
		{"follow", len(c.Follow) > 0},
		{"data", c.Data != ""},
		{"store", c.Store != ""},
		{"nftables, deny-file, crowdsec or webhook", c.Enforce.Any()},
	} {
		if other.set {
			return fmt.Errorf("demo: set with %s: must be without, as its traffic is made up", other.name)
		}
	}
	if c.HTTP == Off {
		return errors.New("demo: http is off: must be an address, for the console and lately top")
	}
	for _, l := range []struct{ name, address, standard string }{{"resp", c.RESP, DefaultRESP}, {"http", c.HTTP, DefaultHTTP}} {
		if _, unix := listen.SocketPath(l.address); unix {
			continue
		}
		if host, _, err := net.SplitHostPort(l.address); err == nil && !loopback(host) {
			return fmt.Errorf("demo: set with %s %s, which other machines can reach: must be a loopback address, such as %s", l.name, l.address, l.standard)
		}
	}
	return nil
}
