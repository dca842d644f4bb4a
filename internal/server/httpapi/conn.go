package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
)

// A limitedListener accepts the connections that the server's limits allow.
type limitedListener struct {
	net.Listener
	s *Server
}

// The answers of a connection that is closed before its request has been read.
var (
	tooManyConnections = overload("there are too many connections")
	tooManyHeaders     = overload("too many requests with large headers are being received; try again later")
)

// overload returns a complete answer with that detail.
func overload(detail string) []byte {
	body := problemf(http.StatusServiceUnavailable, api.Overload, "%s", detail).document()
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
}

// Accept returns the next connection that is allowed.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limitedConn{Conn: conn, s: l.s, peer: access.AddrOf(conn.RemoteAddr())}
		if l.s.Allow(c.peer) {
			c.head.Store(true)
			return c, nil
		}
		c.refuse(tooManyConnections)
		conn.Close()
	}
}

// refuse sends the only answer on a connection, unless it needs TLS. An empty send buffer
// accepts it at once.
func (c *limitedConn) refuse(answer []byte) {
	if c.s.TLS == nil {
		c.Conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		c.Conn.Write(answer)
	}
}

// A limitedConn is a connection that the limits have allowed. While it receives the header
// of a request, it takes the memory for it from the budget, and gives it back after the
// request: net/http bounds each header, and not those of all connections.
type limitedConn struct {
	net.Conn
	s    *Server
	peer netip.Addr
	once sync.Once

	head     atomic.Bool  // receives the header of a request
	received int          // bytes of it
	taken    atomic.Int64 // from the budget
}

const (
	freeHead   = 4 << 10 // bytes of a header that take nothing from the budget
	headFactor = 2       // memory of a header per byte
	headStep   = 8 << 10 // that are taken at once
)

// errHeads makes net/http close a connection without an answer.
var errHeads = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("no memory for the header of this request")}

// Read reads, and charges for the header of a request.
func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.head.Load() {
		if c.received += n; c.received > freeHead && !c.charge(headFactor*c.received) {
			c.s.Overloaded.Add(1)
			c.refuse(tooManyHeaders)
			return 0, errHeads
		}
	}
	return n, err
}

// charge takes what is missing to n from the budget. Headers come from any client, and get
// at most half of it.
func (c *limitedConn) charge(n int) bool {
	if int64(n) <= c.taken.Load() {
		return true
	}
	if c.s.Budget.Scarce() || !c.s.Budget.Take(headStep) {
		return false
	}
	c.taken.Add(headStep)
	return true
}

// limitedOf returns the connection under one of net/http.
func limitedOf(conn net.Conn) *limitedConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return conn.(*limitedConn)
}

// connState is called by net/http when the state of a connection changes.
func connState(conn net.Conn, state http.ConnState) {
	c := limitedOf(conn)
	t, ok := conn.(*tls.Conn)
	two := ok && state != http.StateNew && t.ConnectionState().NegotiatedProtocol == "h2"
	switch {
	case state == http.StateActive, two: // HTTP/2 has no state for the beginning of a header
		c.head.Store(false)
	case state == http.StateIdle:
		c.giveBack()
		c.received = 0
		c.head.Store(true)
	}
}

// giveBack gives back what the header of the request has taken.
func (c *limitedConn) giveBack() { c.s.Budget.Give(int(c.taken.Swap(0))) }

// Close closes the connection.
func (c *limitedConn) Close() error {
	c.once.Do(func() {
		c.s.Conns.Leave(c.peer)
		c.giveBack()
	})
	return c.Conn.Close()
}

// CloseWrite closes the writing side. With it, net/http lets a client read why it was
// refused before the connection closes.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// An errorLog is where net/http writes what goes wrong on connections.
type errorLog struct{ s *Server }

// Write logs a line: at the level of debug, as any client can cause it, unless a certificate is rejected.
func (l errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if peer, err, ok := strings.Cut(strings.TrimPrefix(text, "http: TLS handshake error from "), ": "); ok && strings.Contains(err, "failed to verify certificate") {
		at, _ := netip.ParseAddrPort(peer)
		l.s.BadCertificate(at.Addr().WithZone("").Unmap(), errors.New(err))
	} else {
		l.s.Log.Debug(text)
	}
	return len(line), nil
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// connContext keeps the connection for streams.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, limitedOf(conn))
}

// streams prepares c for a stream: the header is done with, and the kernel's send buffer
// is small, for a peer that does not read.
func (c *limitedConn) streams() {
	c.giveBack()
	if kernel, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		_ = kernel.SetWriteBuffer(streamBuffer) // no error matters: it is a bound, not a promise
	}
}
