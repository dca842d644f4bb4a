// Package listen has what the RESP and the HTTP listener of a server have in common: settings,
// the connection limiter, statistics and the histogram of decision latencies.
package listen

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/loglimit"
)

// A Config has the settings that all listeners have. Only Engine must be set.
// The functions are called by several goroutines at once.
type Config struct {
	// Engine answers the requests.
	Engine *engine.Engine

	// Tokens returns the tokens in force. If it is nil or returns nil, everyone who
	// can connect is an admin.
	Tokens func() *access.Tokens

	// ClientCAs returns the CAs of the certificates of clients, which Tokens gives roles; nil means that
	// clients are not asked for certificates. It needs TLS.
	ClientCAs func() *x509.CertPool

	// Rejected counts logins with unknown tokens or certificates, and Budget bounds the memory of
	// requests and answers in transit. The listeners of one server share them; nil
	// means that this listener has its own.
	Rejected *atomic.Uint64
	Budget   *access.Budget

	// Log receives changes that clients make, failed logins and panics; nil discards
	// them.
	Log *slog.Logger

	// Store returns the state of the store that servers share; nil means that limits and
	// bans are in memory.
	Store func() *api.StoreStatus

	// Version is the version in answers to clients; "" means "devel".
	Version string

	// TLS is the configuration of TLS; nil means no TLS. Listeners that already
	// speak TLS must not be served.
	TLS *tls.Config

	// Limits bounds the connections and subscribers, and the time that a shutdown
	// waits for requests in progress.
	access.Limits
}

// A Listener is the part of a listener that does not depend on its protocol: its
// settings, its connection limiter and its statistics. Make one with [New].
type Listener struct {
	Config
	Name    string
	Conns   *access.ConnLimiter
	Limited *slog.Logger // Log with a limited rate, for lines that any client can cause

	Subscribers  atomic.Int64  // connections that subscribe to events or hot keys now
	Requests     atomic.Uint64 // commands, or HTTP requests
	Errors       atomic.Uint64 // requests that were answered with an error
	Overloaded   atomic.Uint64 // those with the code OVERLOAD among Errors
	Unauthorized atomic.Uint64 // requests without the role that they need, and unknown tokens
	Panics       atomic.Uint64 // requests that ended in a panic
	Cut          atomic.Uint64 // connections whose client was too slow, or silent

	// Latency is of decisions: from the arrival of the request until its answer was
	// passed to the operating system (RESP) or to net/http. All decisions of a
	// pipeline or of one body take as long as the pipeline or body.
	Latency Latency
}

// New returns a Listener with the defaults of what c does not set.
func New(name string, c Config) *Listener {
	c.Limits = c.Limits.WithDefaults()
	if c.Tokens == nil {
		c.Tokens = func() *access.Tokens { return nil }
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Rejected = cmp.Or(c.Rejected, new(atomic.Uint64))
	c.Budget = cmp.Or(c.Budget, access.NewBudget(0))
	c.Version = cmp.Or(c.Version, "devel")
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		c.TLS.MinVersion = max(c.TLS.MinVersion, tls.VersionTLS12)
	}
	return &Listener{
		Config: c, Name: name, Conns: access.NewConnLimiter(c.MaxConnections, c.PeerConnections),
		Limited: slog.New(loglimit.New(c.Log.Handler())),
	}
}

// Allow reports whether a connection of peer is within the limits. The caller then calls
// Conns.Leave when it closes the connection. Connections that are refused are logged.
func (l *Listener) Allow(peer netip.Addr) bool {
	if l.Conns.Enter(peer) {
		return true
	}
	l.Limited.Warn("overload: a connection is refused", "listener", l.Name, "peer", access.PeerName(peer),
		"max_connections", l.MaxConnections, "peer_connections", l.PeerConnections)
	return false
}

// TLSConfig returns the configuration of TLS for protocols such as h2. A client may leave out a certificate
// and send a token instead; one with a certificate that no CA of now has signed is rejected.
func (l *Listener) TLSConfig(protocols ...string) *tls.Config {
	base := l.TLS.Clone()
	base.NextProtos = protocols
	if l.ClientCAs == nil {
		return base
	}
	base.ClientAuth = tls.VerifyClientCertIfGiven
	base.SessionTicketsDisabled = true // a resumed session has a certificate that earlier CAs have signed
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = l.ClientCAs()
		return now, nil
	}
	return config
}

// RejectCertificate counts and logs a login from peer whose certificate has no role.
func (l *Listener) RejectCertificate(peer netip.Addr, names []string) {
	l.Unauthorized.Add(1)
	l.Rejected.Add(1)
	l.Limited.Warn("login rejected: the certificate has no role", "peer", access.PeerName(peer), "certificate", strings.Join(names, ", "))
}

// BadCertificate counts and logs a connection of peer whose certificate cannot be verified.
func (l *Listener) BadCertificate(peer netip.Addr, err error) {
	l.Unauthorized.Add(1)
	l.Rejected.Add(1)
	l.Limited.Warn("connection rejected: the certificate of the client cannot be verified", "listener", l.Name, "peer", access.PeerName(peer), "error", err)
}

// NoRole returns the sentence for a client whose certificate has these names and no role.
func NoRole(names []string) string {
	return fmt.Sprintf("the certificate has no role: add a line to the token file of the server, with a role and cert: before one of its names (%.200s), or send a token", strings.Join(names, ", "))
}

// RejectLogin counts and logs a login from peer whose token is unknown. Nobody is locked
// out: tokens have at least [access.MinToken] characters and cannot be guessed, whereas
// clients behind one proxy share an address.
func (l *Listener) RejectLogin(peer netip.Addr) {
	l.Unauthorized.Add(1)
	l.Rejected.Add(1)
	l.Limited.Warn("login rejected: unknown token", "peer", access.PeerName(peer))
}

// Open returns the number of open connections.
func (l *Listener) Open() int {
	open, _, _ := l.Conns.Counts()
	return open
}

// latencyBounds are the upper bounds of the buckets of a [Latency]. Durations above the last
// one are in one more bucket.
var latencyBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	100 * time.Millisecond, time.Second,
}

// A Latency is a histogram of the durations of decisions. Each connection adds to one of
// several parts, so that cores seldom write to the same cache line. Its zero value is empty
// and ready to use.
type Latency struct {
	observers atomic.Uint32
	parts     [32]LatencyPart
}

// A LatencyPart is the histogram of some of the connections.
type LatencyPart struct {
	sum     atomic.Int64 // nanoseconds
	buckets [len(latencyBounds) + 1]atomic.Uint64
}

// Part returns the part for one more connection.
func (l *Latency) Part() *LatencyPart { return &l.parts[l.observers.Add(1)%uint32(len(l.parts))] }

// Observe counts n decisions that took d each.
func (p *LatencyPart) Observe(d time.Duration, n uint64) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	p.buckets[i].Add(n)
	p.sum.Add(int64(d) * int64(n))
}

// Count returns how many decisions were counted, their sum, and for each bound in seconds how
// many took no longer. Concurrent decisions may be in sum and not in n.
func (l *Latency) Count() (n uint64, sum time.Duration, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(latencyBounds))
	for i := range l.parts {
		sum += time.Duration(l.parts[i].sum.Load())
	}
	for b := range len(latencyBounds) + 1 {
		for i := range l.parts {
			n += l.parts[i].buckets[b].Load()
		}
		if b < len(latencyBounds) {
			buckets[latencyBounds[b].Seconds()] = n
		}
	}
	return n, sum, buckets
}
