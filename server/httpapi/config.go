package httpapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/server/access"
	"github.com/lately-go/lately/server/console"
	"github.com/lately-go/lately/server/engine"
)

// Config says what a Server answers from, and its bounds. Only Engine has to be
// set. The functions are called by several goroutines at once.
type Config struct {
	// Engine is what is asked.
	Engine *engine.Engine

	// Tokens returns the tokens as they are now. Where it is nil or returns
	// nil, everyone who can connect is admin.
	Tokens func() *access.Tokens

	// Guard limits failed authentications; nil means a guard of its own. It
	// is here so that all listeners can share one.
	Guard *access.Guard

	// Log is told of bans, lifts, rule changes, failed logins and panics; nil
	// means nobody is.
	Log *slog.Logger

	// Reload reads the rules file again; nil means that there is none.
	Reload func() error

	// RulesText returns the text of the rules file in force; nil means that
	// there is none.
	RulesText func() ([]byte, error)

	// Ready returns why the server is not ready yet, or nil; nil means that
	// it is from the start. A server that drains is not ready.
	Ready func() error

	// SnapshotAge returns how old the newest snapshot is, and false if there
	// is none; nil means that there is none.
	SnapshotAge func() (time.Duration, bool)

	// Version is the server's version, for the status; "" means "devel".
	Version string

	// Console is the files of the console; nil means those of package
	// console.
	Console fs.FS

	// TrustedProxies and Hops are whom to believe about who a client is, as in
	// [latelyhttp.IdentityConfig]. Forward-auth answers these alone.
	TrustedProxies []netip.Prefix
	Hops           int

	// Hosts is the names by which the server may be called, next to
	// localhost, loopback addresses and the address of the connection.
	Hosts []string

	// TLS is the configuration of TLS; nil means none. A listener that is TLS
	// already must not be given to Serve.
	TLS *tls.Config

	// MaxConnections bounds the connections; 0 means 10,000. PeerConnections
	// bounds those of one address; 0 means half of MaxConnections.
	MaxConnections, PeerConnections int

	// MaxSubscribers bounds the subscribers of the event stream; 0 means 2,048.
	MaxSubscribers int

	// Drain is how long Serve waits for requests under way when it is told to
	// end; 0 means 10 seconds.
	Drain time.Duration
}

// withDefaults returns c with what is not set, or the error that names the field
// that is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil {
		return c, errors.New("Config.Engine is nil; make one with engine.New")
	}
	for _, n := range []struct {
		name  string
		value *int
		def   int
	}{
		{"Config.MaxConnections", &c.MaxConnections, 10_000},
		{"Config.PeerConnections", &c.PeerConnections, 0}, // half of the one before
		{"Config.MaxSubscribers", &c.MaxSubscribers, 2048},
	} {
		if *n.value < 0 {
			return c, fmt.Errorf("%s is %d; allowed is 0 (the default) or more", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.def
		}
	}
	if c.PeerConnections == 0 {
		c.PeerConnections = max(c.MaxConnections/2, 1)
	}
	if c.Drain < 0 {
		return c, fmt.Errorf("Config.Drain is %v; allowed is 0 (10s) or more", c.Drain)
	}
	if c.Drain == 0 {
		c.Drain = 10 * time.Second
	}
	for _, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ :") {
			return c, fmt.Errorf("Config.Hosts has %q; allowed are host names without port, such as lately.example.org", h)
		}
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Console == nil {
		c.Console = console.Files
	}
	return c, nil
}

func (c *Config) identity() latelyhttp.IdentityConfig {
	return latelyhttp.IdentityConfig{TrustedProxies: c.TrustedProxies, Hops: c.Hops}
}
