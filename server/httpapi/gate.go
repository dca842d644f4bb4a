package httpapi

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/lately-go/lately/server/access"
)

// A gatedListener accepts what its gate lets in.
type gatedListener struct {
	net.Listener
	gate  *access.Gate
	plain bool // there is no TLS, so that one who is refused can be told
}

const busyBody = `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"there are too many connections","code":"OVERLOAD"}` + "\n"

var busy = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Length: " + strconv.Itoa(len(busyBody)) + "\r\n\r\n" + busyBody)

// Accept returns the next connection that there is room for.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := access.PeerOf(conn.RemoteAddr())
		if l.gate.Enter(peer) {
			return &gatedConn{Conn: conn, gate: l.gate, peer: peer}, nil
		}
		if l.plain {
			// An empty send buffer takes this at once.
			conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			conn.Write(busy)
		}
		conn.Close()
	}
}

// A gatedConn leaves its gate when it is closed.
type gatedConn struct {
	net.Conn
	gate *access.Gate
	peer netip.Addr
	once sync.Once
}

// Close closes the connection.
func (c *gatedConn) Close() error {
	c.once.Do(func() { c.gate.Leave(c.peer) })
	return c.Conn.Close()
}

// CloseWrite says that nothing more will be written: with it, net/http lets a client
// read why it was refused before the connection is gone.
func (c *gatedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connKey struct{}

// connContext keeps the connection for streams, which bound its buffers.
func (s *Server) connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// boundWrites makes the kernel keep no more than size bytes for a peer that does not
// read.
func boundWrites(ctx context.Context, size int) {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if g, ok := conn.(*gatedConn); ok {
		if tcp, ok := g.Conn.(*net.TCPConn); ok {
			tcp.SetWriteBuffer(size) // no error matters: it is a bound, not a promise
		}
	}
}
