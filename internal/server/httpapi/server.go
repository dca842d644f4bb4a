package httpapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/loglimit"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyhttp"
)

// How long a client may take. Streams have deadlines of their own.
const (
	headerTimeout = 2 * time.Second
	readTimeout   = 5 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 60 << 10 // and 4 KiB more; nginx accepts 32 KiB, and adds the URI and its own fields
	maxStreams    = 250      // of one HTTP/2 connection
)

// A Server answers HTTP requests from an engine. It is safe for concurrent use, and
// an [http.Handler]. Make one with [New]; the zero Server is not usable.
type Server struct {
	config   Config
	engine   *engine.Engine
	log      *slog.Logger
	often    *slog.Logger // for lines that strangers can cause: rate-limited
	identity *latelyhttp.Identity
	rejected *access.RejectedLogins
	budget   *access.Budget
	router   *router
	hosts    map[string]bool
	files    map[string]*file
	openAPI  []byte
	metrics  http.Handler
	cross    http.CrossOriginProtection
	sessions *sessions
	forward  atomic.Pointer[forward]

	untrusted untrusted
	calls     sync.Pool // *call

	beat        atomic.Pointer[beat]
	subscribers atomic.Int64
	draining    atomic.Bool
	drained     chan struct{} // closed when it is told to end
	drainOnce   sync.Once

	gate         *access.ConnLimiter
	requests     atomic.Uint64
	answers      [600]atomic.Uint64 // by status
	panics       atomic.Uint64
	unauthorized atomic.Uint64
	cut          atomic.Uint64
	errors       atomic.Uint64
	overload     atomic.Uint64
	latency      engine.Latency
}

// New returns a Server of c. The error names the field that cannot be, its value
// and what is allowed.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, engine: c.Engine, log: c.Log, rejected: c.Rejected, budget: c.Budget, drained: make(chan struct{})}
	if s.identity, err = latelyhttp.NewIdentity(c.identity()); err != nil {
		return nil, err
	}
	if s.router, err = newRouter(routes()); err != nil {
		return nil, err
	}
	if s.files, err = readFiles(c.Console); err != nil {
		return nil, fmt.Errorf("the console: %w", err)
	}
	if s.openAPI, err = s.router.openAPI(c.Version); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(s); err != nil {
		return nil, err
	}
	s.sessions = newSessions()
	s.hosts = allowedHosts(c.Hosts)
	s.calls.New = func() any { return &call{s: s, caller: s.engine.Caller(), latency: s.latency.Part()} }
	s.beat.Store(newBeat())
	s.gate = access.NewConnLimiter(c.MaxConnections, c.PeerConnections)
	s.often = slog.New(loglimit.New(c.Log.Handler()))
	return s, nil
}

// Serve answers the connections of l until ctx is done. It then stops to accept,
// ends the event streams, finishes the requests under way for up to Config.ShutdownTimeout,
// cuts what is left, and returns nil. An error is that of accepting. It may be called
// for several listeners; once one was told to end, the Server is not ready any more.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server, ended := s.newHTTP(), make(chan error, 1)
	go func() {
		gated := &gatedListener{Listener: l, gate: s.gate, budget: s.budget, busy: &s.overload, plain: server.TLSConfig == nil, refused: s.crowded}
		if server.TLSConfig != nil {
			ended <- server.ServeTLS(gated, "", "")
		} else {
			ended <- server.Serve(gated)
		}
	}()
	stop := make(chan struct{})
	var pulse sync.WaitGroup
	pulse.Go(func() { s.pulse(stop) })
	defer pulse.Wait()
	defer close(stop)
	select {
	case err := <-ended:
		server.Close()
		return fmt.Errorf("http: %w", err)
	case <-ctx.Done():
	}
	s.drain()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		s.log.Warn("requests that took longer than the shutdown timeout were aborted", "shutdown_timeout", s.config.ShutdownTimeout.String())
		server.Close()
	}
	<-ended
	return nil
}

// crowded logs that there is no room for a connection of peer.
func (s *Server) crowded(peer netip.Addr) {
	s.often.Warn("overload: a connection is refused", "listener", "http", "peer", peer.String(),
		"max_connections", s.config.MaxConnections, "peer_connections", s.config.PeerConnections)
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
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext:       s.connContext,
		ConnState:         connState,
	}
	if s.config.TLS != nil {
		protocols.SetHTTP2(true)
		server.TLSConfig = s.config.TLS.Clone()
		server.TLSConfig.MinVersion = max(server.TLSConfig.MinVersion, tls.VersionTLS12)
	}
	return server
}

// drain makes the server not ready, and ends streams.
func (s *Server) drain() {
	s.draining.Store(true)
	s.drainOnce.Do(func() { close(s.drained) })
}

// Stats returns what s has done so far.
func (s *Server) Stats() engine.ListenerStats {
	t := engine.ListenerStats{
		Requests: s.requests.Load(), Errors: s.errors.Load(), Overloaded: s.overload.Load(), Unauthorized: s.unauthorized.Load(), Panics: s.panics.Load(),
		Subscribers: int(s.subscribers.Load()), Cut: s.cut.Load(), Latency: s.latency.Count(),
	}
	t.Connections, t.Accepted, t.Refused = s.gate.Counts()
	return t
}
