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

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/console"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyhttp"
)

// Config says what a Server answers from, and its bounds. Only Engine has to be
// set. The functions are called by several goroutines at once.
type Config struct {
	// Engine is what is asked.
	Engine *engine.Engine

	// Tokens returns the tokens as they are now. Where it is nil or returns
	// nil, everyone who can connect is admin.
	Tokens func() *access.Tokens

	// Rejected counts and logs failed logins; nil means that the Server has
	// its own. It is here so that all listeners can share one.
	Rejected *access.RejectedLogins

	// Budget bounds the memory of requests and answers that are on their way;
	// nil means that the Server has its own of access.DefaultBudget bytes. It is
	// here so that all listeners can share one.
	Budget *access.Budget

	// Log is told of bans, unbans, rule changes, failed logins and panics; nil
	// means nobody is.
	Log *slog.Logger

	// Reload reads the rules file again, and returns what has changed; nil means
	// that there is none. New rules that would drop bans are an error, unless
	// dropBans is set.
	Reload func(dropBans bool) (api.RuleChanges, error)

	// RulesText returns the text of the rules file in force; nil means that
	// there is none.
	RulesText func() ([]byte, error)

	// Ready returns why the server is not ready yet, or nil; nil means that
	// it is from the start. A server that drains is not ready.
	Ready func() error

	// SnapshotAge returns how old the newest snapshot is, and false if there
	// is none; nil means that there is none.
	SnapshotAge func() (time.Duration, bool)

	// RESP returns what the RESP listener has done, for metrics; nil means
	// that there is none.
	RESP func() engine.ListenerStats

	// Storage returns how writing to the data directory goes; nil means that
	// there is none.
	Storage func() Storage

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

	// Bounds is how many connections and subscribers of the event stream there
	// can be, and how long Serve waits for requests under way when it is told
	// to end.
	access.Limits
}

// withDefaults returns c with what is not set, or the error that names the field
// that is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil {
		return c, errors.New("Config.Engine is nil; make one with engine.New")
	}
	var err error
	if c.Limits, err = c.Limits.WithDefaults(); err != nil {
		return c, fmt.Errorf("Config.%w", err)
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
	if c.Budget == nil {
		c.Budget = access.NewBudget(0)
	}
	if c.Rejected == nil {
		c.Rejected = access.NewRejectedLogins(c.Log)
	}
	if c.Console == nil {
		c.Console = console.Files
	}
	return c, nil
}

func (c *Config) identity() latelyhttp.IdentityConfig {
	return latelyhttp.IdentityConfig{TrustedProxies: c.TrustedProxies, Hops: c.Hops}
}
