package respapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/wait"
)

// A Server answers RESP connections from an engine. It is safe for concurrent use.
// Make one with [New].
type Server struct {
	*listen.Listener
	commands commandTable
	started  time.Time
	ids      atomic.Int64
	queues   *access.Budget // of transactions; half of the budget of requests
	tls      *tls.Config    // or nil

	mu    sync.Mutex
	conns map[*conn]struct{}

	tick     atomic.Uint32 // of the reaper, from 1
	draining atomic.Bool
	serving  sync.WaitGroup
}

// New returns a Server of c.
func New(c listen.Config) *Server {
	s := &Server{Listener: listen.New("resp", c), commands: newCommandTable(commands), started: time.Now(), conns: make(map[*conn]struct{})}
	limit, _ := s.Budget.Stats()
	s.queues = access.NewBudget(max(limit/2, 1))
	s.tick.Store(1)
	if s.TLS != nil {
		s.tls = s.TLSConfig()
	}
	return s
}

// Serve answers the connections of l until ctx is done. Then it closes l, answers what has
// been received, closes each connection between two commands or after
// Limits.ShutdownTimeout, and returns nil. Its error is that of accepting. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	reaping, stop := context.WithCancel(context.Background())
	var reaper sync.WaitGroup
	reaper.Go(func() { s.reap(reaping) })
	context.AfterFunc(ctx, func() { l.Close() })
	err := s.accept(ctx, l)
	l.Close()
	s.drain()
	stop()
	reaper.Wait()
	return err
}

// accept serves each connection, until ctx is done and l is closed. It waits while there are
// no descriptors or there is no memory.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	failures := 0
	for {
		raw, err := l.Accept()
		switch {
		case err == nil:
			failures = 0
			s.welcome(raw)
		case ctx.Err() != nil:
			return nil
		case isShortage(err):
			failures++
			pause := wait.Backoff(5*time.Millisecond, time.Second, failures)
			s.Log.Error("no connection can be accepted for now", "error", err, "pause", pause.String())
			_ = wait.For(ctx, pause) // after its end, Accept fails
		default:
			return fmt.Errorf("resp: %w", err)
		}
	}
}

// isShortage reports whether accepting may work later.
func isShortage(err error) bool {
	for _, shortage := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ECONNABORTED} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}

const tooManyConns = "-OVERLOAD there are too many connections\r\n"

// welcome begins to serve a connection, if it is within the limits.
func (s *Server) welcome(raw net.Conn) {
	peer := access.AddrOf(raw.RemoteAddr())
	if !s.Allow(peer) {
		if s.TLS == nil {
			// An empty send buffer takes this at once.
			raw.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			raw.Write([]byte(tooManyConns))
		}
		raw.Close()
		return
	}
	c := newConn(s, raw, peer)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	s.serving.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.Conns.Leave(peer)
	})
}

// connections returns the open connections.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}
