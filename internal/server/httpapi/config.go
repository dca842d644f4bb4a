package httpapi

import (
	"net/netip"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

// Config has the settings of a Server. Only Engine must be set. The functions are called
// by several goroutines at once.
type Config struct {
	engine.ListenerConfig

	// RulesText returns the text of the rules file in force; nil means that there is
	// no rules file.
	RulesText func() ([]byte, error)

	// Ready returns why the server is not ready, or nil if it is; nil means that it
	// always is. A server that shuts down is never ready.
	Ready func() error

	// SnapshotAge returns the age of the newest snapshot, and false if the server
	// writes none; nil means that it writes none.
	SnapshotAge func() (time.Duration, bool)

	// RESP returns the statistics of the RESP listener for the metrics; nil means
	// that there is no such listener.
	RESP func() engine.ListenerStats

	// Storage returns the state of writing to the data directory; nil means that
	// there is no such directory.
	Storage func() Storage

	// TrustedProxies are the proxies that may tell the client's address, as in
	// [latelyhttp.IdentityConfig]. Forward-auth answers only them.
	TrustedProxies []netip.Prefix

	// Hosts has the names of the server that requests may use, in addition to
	// localhost, loopback addresses and the address of the connection.
	Hosts []string
}
