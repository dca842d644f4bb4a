//go:build linux

package storm

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/test/redistest"
)

// The modes of a proxy.
type treatment int

const (
	passes  treatment = iota
	cuts              // closes connections, and accepts none
	holds             // accepts, and passes on nothing
	delays            // passes replies on later
	damages           // replaces some replies by bytes that are none
)

func (t treatment) String() string {
	return [...]string{"passes", "cuts", "holds", "delays", "damages"}[t]
}

// A proxy is between one server and the store.
type proxy struct {
	addr     string
	listener net.Listener
	store    *redistest.Server
	pipes    sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	does    treatment
	delay   time.Duration
	closed  bool
	conns   map[net.Conn]bool
	random  *rand.Rand
}

// damaged are replies that no server of Redis sends. The last two together are one like any other: those that it replaces are lost.
var damaged = []string{"$-5\r\n", "$9223372036854775807\r\n", "*2147483647\r\n", "*-7\r\n", "@\r\n", ":12a\r\n", "$3\r\nab", "c\r\n"}

func newProxy(store *redistest.Server, random *rand.Rand) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{addr: listener.Addr().String(), listener: listener, store: store, conns: make(map[net.Conn]bool), random: random}
	p.changed.L = &p.mu
	p.pipes.Go(p.accept)
	return p, nil
}

// set makes the proxy do something else from now on.
func (p *proxy) set(does treatment, delay time.Duration) {
	p.mu.Lock()
	p.does, p.delay = does, delay
	if does == cuts {
		for conn := range p.conns {
			conn.Close()
		}
	}
	p.mu.Unlock()
	p.changed.Broadcast()
}

// close ends the proxy and its connections.
func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set(cuts, 0)
	p.pipes.Wait()
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.pipes.Go(func() { p.serve(conn) })
	}
}

// serve connects a server with the store.
func (p *proxy) serve(server net.Conn) {
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	store, err := p.store.Dial()
	if err != nil {
		return
	}
	defer p.forget(store)
	if !p.keep(store) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.copy(server, store, true) })
	p.copy(store, server, false)
	store.Close()
	server.Close()
	back.Wait()
}

// keep has the proxy close conn when it cuts; it reports whether conn may be used now.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return p.does != cuts && !p.closed
}

func (p *proxy) forget(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// copy passes on what arrives. A read has whole replies as a rule: redis-server writes each at once.
func (p *proxy) copy(to io.WriteCloser, from io.Reader, replies bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, failed := to.Write(p.treat(buffer[:n], replies)); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// treat returns what is passed on of b, when it is time.
func (p *proxy) treat(b []byte, replies bool) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.does == holds {
		p.changed.Wait()
	}
	if !replies {
		return b
	}
	switch does, delay := p.does, p.delay; {
	case does == delays:
		p.mu.Unlock()
		time.Sleep(delay)
		p.mu.Lock()
	case does == damages && p.random.IntN(10) == 0:
		return []byte(pick(p.random, damaged...))
	}
	return b
}
