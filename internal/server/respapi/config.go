package respapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
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

	// Log is told of bans, unbans, resets, failed logins and panics; nil means
	// nobody is.
	Log *slog.Logger

	// Reload reads the rules file again, and returns what has changed; nil means
	// that there is none. New rules that would drop bans are an error, unless
	// dropBans is set.
	Reload func(dropBans bool) (api.RuleChanges, error)

	// Version is the server's version, for HELLO and INFO; "" means "devel".
	Version string

	// TLS is the configuration of TLS; nil means none. A listener that is TLS
	// already must not be given to Serve.
	TLS *tls.Config

	// Bounds is how many connections and subscribers there can be, and how long
	// Serve waits for commands under way when it is told to end.
	access.Limits

	// Idle is how long a connection may send nothing; 0 means 5 minutes, less
	// than 0 for ever. One that subscribes may be silent for ever.
	Idle time.Duration
}

// How long a client may take.
const (
	greetTime   = 10 * time.Second // until its first command, and until it is authenticated
	partialTime = 10 * time.Second // until a command that has begun is whole
	writeTime   = 4 * time.Second  // until it takes what it is sent
	quietTime   = 100 * time.Millisecond
	lingerTime  = 500 * time.Millisecond
)

// What a client may send.
const (
	maxFields        = 64       // of an event
	maxSubscriptions = 128      // of a connection
	maxChannel       = 256      // bytes of a channel's name or a pattern
	maxLogins        = 3        // unknown tokens on one connection
	maxListed        = 1000     // bans or keys in an answer
	maxLabel         = 64       // bytes of what a client calls itself
	lingerBytes      = 64 << 10 // that are read from a client which is being closed
	subscriberRoom   = 64 << 10 // of what the kernel keeps for a subscriber that does not read
)

// Limits of the codec, for those who may not ask anything yet and for the others.
var (
	strangerLimits = resp.Limits{Bulk: 1024, Args: 16, Inline: 1024, Command: 4096, Buffer: 1024}
	callerLimits   = resp.Limits{}
)

// withDefaults returns c with what is not set, or the error that names the field
// that is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil {
		return c, errors.New("respapi: Config.Engine is nil; make one with engine.New")
	}
	var err error
	if c.Limits, err = c.Limits.WithDefaults(); err != nil {
		return c, fmt.Errorf("respapi: Config.%w", err)
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.Tokens == nil {
		c.Tokens = func() *access.Tokens { return nil }
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
	return c, nil
}
