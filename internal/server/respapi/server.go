package respapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lately-go/lately/internal/loglimit"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// A Server answers RESP connections from an engine. It is safe for concurrent use.
// Make one with [New]; the zero Server is not usable.
type Server struct {
	config   Config
	engine   *engine.Engine
	log      *slog.Logger
	often    *slog.Logger // for lines that strangers can cause: rate-limited
	rejected *access.RejectedLogins
	tls      *tls.Config
	commands index
	started  time.Time

	gate         *access.ConnLimiter
	ids          atomic.Int64
	subscribers  atomic.Int64
	ended        atomic.Uint64 // commands of connections that are closed
	unauthorized atomic.Uint64
	panics       atomic.Uint64
	cut          atomic.Uint64
	errors       atomic.Uint64
	overloaded   atomic.Uint64
	latency      engine.Latency

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New returns a Server of c. The error names the field that cannot be, its value
// and what is allowed.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, engine: c.Engine, log: c.Log, rejected: c.Rejected, started: time.Now(), conns: make(map[*conn]struct{}),
	}
	if c.TLS != nil {
		s.tls = c.TLS.Clone()
		s.tls.MinVersion = max(s.tls.MinVersion, tls.VersionTLS12)
	}
	if err := s.commands.init(commands()); err != nil {
		return nil, err
	}
	s.gate = access.NewConnLimiter(c.MaxConnections, c.PeerConnections)
	s.often = slog.New(loglimit.New(c.Log.Handler()))
	return s, nil
}

// Serve answers the connections of l until ctx is done. It then stops to accept,
// answers what has been received, closes each connection between two commands,
// after Config.ShutdownTimeout those too that are not done, and returns nil. An error is that
// of accepting. It closes l. It may be called for several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	p := &patrol{s: s, stop: make(chan struct{})}
	p.tick.Store(1)
	p.watcher.Go(p.watch)
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(ctx, l, p) }()
	var err error
	select {
	case err = <-accepted:
		l.Close()
	case <-ctx.Done():
		l.Close()
		<-accepted // what it says of a listener that is closed does not matter
	}
	p.drain(s.config.ShutdownTimeout)
	if err != nil {
		return fmt.Errorf("resp: %w", err)
	}
	return nil
}

// accept starts a goroutine for each connection, until l is closed. Without
// descriptors or memory it waits for some.
func (s *Server) accept(ctx context.Context, l net.Listener, p *patrol) error {
	var pause time.Duration
	for {
		raw, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.welcome(raw, p)
		case ctx.Err() != nil:
			return nil
		case isShortage(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Error("no connection can be accepted for now", "error", err, "pause", pause.String())
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		default:
			return err
		}
	}
}

// isShortage reports whether accepting may work later.
func isShortage(err error) bool {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ECONNABORTED} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

const crowded = "-OVERLOAD there are too many connections\r\n"

// welcome begins to serve a connection, if there is room for it.
func (s *Server) welcome(raw net.Conn, p *patrol) {
	peer := access.AddrOf(raw.RemoteAddr())
	if !s.gate.Enter(peer) {
		s.often.Warn("overload: a connection is refused", "listener", "resp", "peer", peer.String(),
			"max_connections", s.config.MaxConnections, "peer_connections", s.config.PeerConnections)
		if s.tls == nil {
			// An empty send buffer takes this at once.
			raw.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			raw.Write([]byte(crowded))
		}
		raw.Close()
		return
	}
	c := newConn(s, raw, peer, p)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	p.serving.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.ended.Add(c.asked.Load())
		s.gate.Leave(peer)
	})
}

// Stats returns what s has done so far.
func (s *Server) Stats() engine.ListenerStats {
	t := engine.ListenerStats{
		Requests: s.ended.Load(), Errors: s.errors.Load(), Overloaded: s.overloaded.Load(), Unauthorized: s.unauthorized.Load(), Panics: s.panics.Load(),
		Subscribers: int(s.subscribers.Load()), Cut: s.cut.Load(), Latency: s.latency.Count(),
	}
	t.Connections, t.Accepted, t.Refused = s.gate.Counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		t.Requests += c.asked.Load()
	}
	return t
}
