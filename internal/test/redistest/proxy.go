package redistest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// A Proxy is between clients and a server, and counts the scripts that are run, without those about the list of bans, which
// a store runs by itself. While it holds, it passes on no reply before a number of them have arrived: a client that waits
// for a reply in between waits forever.
type Proxy struct {
	// Addr is the address for clients.
	Addr string

	server *Server

	mu       sync.Mutex
	changed  sync.Cond
	seen     int // EVALSHA and EVAL
	expected int
}

// Watch returns a proxy of s, on loopback, which ends with the test.
func (s *Server) Watch(t testing.TB) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: listener.Addr().String(), server: s}
	p.changed.L = &p.mu
	var pipes sync.WaitGroup
	t.Cleanup(pipes.Wait)
	t.Cleanup(p.Release)
	t.Cleanup(func() { listener.Close() })
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			pipes.Go(func() { p.pipe(conn) })
		}
	})
	return p
}

func (p *Proxy) pipe(client net.Conn) {
	defer client.Close()
	server, err := p.server.Dial()
	if err != nil {
		return
	}
	decides := false // a decision was requested: replies to the first commands of a connection pass
	var back sync.WaitGroup
	defer back.Wait()
	defer server.Close()
	back.Go(func() {
		defer client.Close()
		io.Copy(writer(func(b []byte) (int, error) {
			p.mu.Lock()
			for decides && p.seen < p.expected {
				p.changed.Wait()
			}
			p.mu.Unlock()
			return client.Write(b)
		}), server)
	})
	seen := counter{of: []byte("\r\nEVAL")}
	// One of these is in each script about the list of bans, which a store runs by itself.
	syncs, parts := counter{of: []byte("{bans}:nodes")}, counter{of: []byte("{bans}:ends:")}
	io.Copy(writer(func(b []byte) (int, error) {
		p.mu.Lock()
		n := seen.in(b) - syncs.in(b) - parts.in(b)
		p.seen, decides = p.seen+n, decides || n > 0
		p.mu.Unlock()
		p.changed.Broadcast()
		return server.Write(b)
	}), client)
}

// A counter counts something in a stream.
type counter struct {
	of   []byte
	last []byte // what may be its beginning
}

func (c *counter) in(b []byte) int {
	all := append(c.last, b...)
	c.last = append([]byte(nil), all[max(0, len(all)-len(c.of)+1):]...)
	return bytes.Count(all, c.of)
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Hold expects a number of scripts from now on.
func (p *Proxy) Hold(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = p.seen + n
}

// Release ends a hold.
func (p *Proxy) Release() {
	p.Hold(0)
	p.changed.Broadcast()
}

// Scripts returns how many were seen.
func (p *Proxy) Scripts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// Client returns a client that connects through p, which is closed when the test ends.
func (p *Proxy) Client(t testing.TB) rueidis.Client {
	t.Helper()
	return p.server.Client(t, func(o *rueidis.ClientOption) {
		o.DialCtxFn, o.InitAddress = nil, []string{p.Addr}
	})
}
