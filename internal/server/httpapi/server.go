package httpapi

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/server/console"
	"github.com/lately-go/lately/internal/server/demo"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/latelyhttp"
)

// Config has the settings of a Server. Only Engine must be set. The functions are called
// by several goroutines at once.
type Config struct {
	listen.Config

	// Ready returns why the server is not ready, or nil if it is; nil means that it
	// always is. A server that shuts down is never ready.
	Ready func() error

	// Reload reads the rules file again, and returns what has changed; it must be set for
	// /v1/rules/reload. Without dropBans, rules that would drop bans are an error.
	Reload func(dropBans bool) (api.RuleChanges, error)

	// RESP is the RESP listener, for the metrics; nil means that there is none.
	RESP *listen.Listener

	// RESPAddress is where the RESP listener listens; "" means that there is none.
	RESPAddress string

	// Storage returns the state of writing to the data directory; nil means that there
	// is no such directory.
	Storage func() Storage

	// TrustedProxies are the proxies that may name the client's address, as in
	// [latelyhttp.IdentityConfig]. Forward-auth answers only them.
	// With TrustUnix, so may whoever connects to a Unix socket.
	TrustedProxies []netip.Prefix
	TrustUnix      bool

	// RefusalPage returns the page of forward-auth for clients that prefer HTML, or nil; nil means that there
	// is none.
	RefusalPage func() *refusal.Page

	// Logs is the logs that are followed; nil means that there are none.
	Logs *follow.Follower

	// Feeds is what followers on other machines send; nil means one of the Server's own.
	Feeds *follow.Feeds

	// Demo makes traffic up; nil means that there is none.
	Demo *demo.Demo

	// Enforcer has others refuse what is banned; nil means that nothing does.
	Enforcer *enforce.Enforcer

	// Hosts has the names of the server that requests may use, in addition to
	// localhost, loopback addresses and the address of the connection.
	Hosts []string
}

// Storage is the state of writing to the data directory.
type Storage struct {
	api.StorageStatus
	SnapshotAge time.Duration // of the newest snapshot
	Lost        uint64        // records of the data directory that were damaged when the server started
}

// How long a client may take. Streams have deadlines of their own.
const (
	headerTimeout = 2 * time.Second
	readTimeout   = 5 * time.Second
	writeTimeout  = 10 * time.Second
	maxHeader     = 60 << 10 // and 4 KiB more; nginx accepts 32 KiB, and adds the URI and its own fields
	maxStreams    = 64       // of one HTTP/2 connection; clients with more open another
)

// A Server answers HTTP requests from an engine. It is safe for concurrent use, and
// an [http.Handler]. Make one with [New].
type Server struct {
	*listen.Listener
	config   Config
	identity *latelyhttp.Identity
	routes   []route
	mux      *http.ServeMux
	hosts    map[string]bool
	files    map[string]*file
	document []byte // of OpenAPI
	metrics  http.Handler
	cross    http.CrossOriginProtection
	sessions *sessions
	forward  atomic.Pointer[forward]
	calls    sync.Pool // *call

	trying    atomic.Bool     // a draft of the rules
	untrusted atomic.Int64    // when the next warning about untrusted proxies may follow, in ns since 1970
	drained   context.Context // done when the server shuts down
	drain     context.CancelFunc
	answers   [600]atomic.Uint64 // by status
}

// New returns a Server of c.
func New(c Config) (*Server, error) {
	s := &Server{Listener: listen.New("http", c.Config), config: c, routes: routes(), hosts: allowedHosts(c.Hosts), sessions: newSessions()}
	if c.Feeds == nil {
		s.config.Feeds = follow.NewFeeds(func() {})
	}
	s.drained, s.drain = context.WithCancel(context.Background())
	s.mux = newMux(s.routes)
	var err error
	if s.identity, err = latelyhttp.NewIdentity(latelyhttp.IdentityConfig{TrustedProxies: c.TrustedProxies, TrustUnix: c.TrustUnix}); err != nil {
		return nil, err
	}
	if s.files, err = readFiles(console.Files); err != nil {
		return nil, fmt.Errorf("the console: %w", err)
	}
	s.document, s.metrics = newDocument(s.Version), newMetrics(s)
	s.calls.New = func() any { return &call{s: s, session: s.Engine.Session(), latency: s.Latency.Part()} }
	return s, nil
}

// Serve answers the connections of l until ctx is done. It then stops accepting, ends the
// event streams, waits up to Config.ShutdownTimeout for the requests in progress, aborts
// the rest, and returns nil. The error is that of accepting. Serve may be called for
// several listeners; when the first of them ends, the Server is no longer ready.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server, ended := s.newHTTP(), make(chan error, 1)
	go func() {
		limited := &limitedListener{l, s}
		if s.TLS != nil {
			ended <- server.ServeTLS(limited, "", "")
		} else {
			ended <- server.Serve(limited)
		}
	}()
	select {
	case err := <-ended:
		server.Close()
		return fmt.Errorf("http: %w", err)
	case <-ctx.Done():
	}
	s.drain()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		s.Log.Warn("requests that took longer than the shutdown timeout were aborted", "shutdown_timeout", s.ShutdownTimeout.String())
		server.Close()
	}
	<-ended
	return nil
}

// newHTTP returns the server of net/http with all its bounds.
func (s *Server) newHTTP() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler:           s,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       s.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(errorLog{s}, "", 0),
		ConnContext:       connContext,
		ConnState:         connState,
	}
	if s.TLS != nil {
		protocols.SetHTTP2(true)
		server.TLSConfig = s.TLSConfig("h2", "http/1.1")
	}
	return server
}
