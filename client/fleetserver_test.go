package client

import (
	"cmp"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

const fleetRules = `version: 1
counters:
  requests: {key: client, spans: [1h]}
limits:
  - {name: login, key: user, limit: 100 per 1h}
  - {name: pair, key: [client, user], limit: 2 per 1h}
  - {name: many, key: user, limit: 1000000000 per 1h}
  - {name: plan, key: user, limit: {default: 1 per 1h, at_most: 5 per 1h}}
  - {name: queue, key: user, limit: 60 per 1h burst 3, algorithm: leaky-bucket}
  - {name: work, key: user, limit: 1 at once for 1h, algorithm: in-flight}
bans:
  - {name: flood, key: client, after: 5 hits in 1m, for: 1h, when: {path: /flood}}
hot:
  - {name: product, key: path, threshold: 100 per 60s, hold: 60s, cache: {ttl: 30s}}
  - {name: pair-hot, key: [client, user], threshold: 3 per 2s, hold: 60s, cache: {ttl: 30s}}
`

// A server is a lately server in this process, whose clients connect to a proxy in front of it: the proxy is paused or
// killed in its place.
type testServer struct {
	*proxy
	*engine.Engine
	resp *respapi.Server
}

// startServer starts a server that ends with the test.
func startServer(t testing.TB, c listen.Config) *testServer {
	t.Helper()
	return startServerAt(t, c, freeport.Addr(t))
}

func startServerAt(t testing.TB, c listen.Config, addr string) *testServer {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s, e := serveAt(t, c, l)
	return &testServer{newProxy(t, addr, l.Addr().String()), e, s}
}

// serveAt serves l until the test ends.
func serveAt(t testing.TB, c listen.Config, l net.Listener) (*respapi.Server, *engine.Engine) {
	t.Helper()
	c.Engine = must.Get(engine.New(engine.Config{Rules: parsed(t, fleetRules)}))(t)
	t.Cleanup(c.Engine.Close)
	s := respapi.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, c.Engine
}

// newServed starts a server, and returns it with a Fleet that has only this server.
func newServed(t testing.TB) (*testServer, *Fleet) {
	t.Helper()
	s := startServer(t, listen.Config{})
	return s, mustFleet(t, FleetConfig{Nodes: []string{s.addr}})
}

// parsed returns the rules of a text.
func parsed(t testing.TB, text string) *rules.File {
	t.Helper()
	file := must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
	return file
}

// startServers starts n servers, in the order of their addresses, and returns these, too.
func startServers(t testing.TB, n int) (servers []*testServer, addrs []string) {
	t.Helper()
	for range n {
		servers = append(servers, startServer(t, listen.Config{}))
	}
	slices.SortFunc(servers, func(a, b *testServer) int { return cmp.Compare(a.addr, b.addr) })
	for _, s := range servers {
		addrs = append(addrs, s.addr)
	}
	return servers, addrs
}

// decided returns how many events s has judged.
func (s *testServer) decided() uint64 {
	d := s.Totals()
	return d.Allowed + d.Refused
}

// A proxy passes connections on. It keeps its port while it is dead.
type proxy struct {
	t        testing.TB
	addr     string
	upstream string

	mu     sync.Mutex
	thawed *sync.Cond
	l      net.Listener
	conns  map[net.Conn]struct{}
	frozen bool
	dead   bool
	opened int           // connections so far
	pace   time.Duration // for each KiB to the server
	wg     sync.WaitGroup
}

func newProxy(t testing.TB, addr, upstream string) *proxy {
	p := &proxy{t: t, addr: addr, upstream: upstream, conns: make(map[net.Conn]struct{}), dead: true}
	p.thawed = sync.NewCond(&p.mu)
	p.revive()
	t.Cleanup(func() {
		p.kill()
		p.wg.Wait()
	})
	return p
}

// revive listens, as a server that starts.
func (p *proxy) revive() {
	p.t.Helper()
	l := must.Get(net.Listen("tcp", p.addr))(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addr, p.l, p.dead = l.Addr().String(), l, false
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
}

// kill ends all connections and refuses others, as a server that is killed.
func (p *proxy) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.dead, p.frozen = true, false
	p.thawed.Broadcast()
	p.l.Close()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
	}
}

// freeze passes nothing on until thaw is called, as a server that is paused.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
	p.thawed.Broadcast()
}

// enter waits while p is frozen, and registers a connection, unless p is dead.
func (p *proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen {
		p.thawed.Wait()
	}
	for _, c := range conns {
		if p.dead {
			c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return !p.dead
}

// slow passes at most that many bytes a second on to the server, for each connection.
func (p *proxy) slow(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace = time.Second / time.Duration(bytes>>10)
}

// accepted returns how many connections there have been.
func (p *proxy) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// wait waits for as long as n bytes to the server take.
func (p *proxy) wait(n int) {
	p.mu.Lock()
	pace := p.pace
	p.mu.Unlock()
	if pace > 0 {
		time.Sleep(pace * time.Duration(n) >> 10)
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	p.opened++
	p.mu.Unlock()
	if !p.enter(c) {
		return
	}
	up, err := net.DialTimeout("tcp", p.upstream, 10*time.Second)
	if err != nil {
		return
	}
	defer up.Close()
	if !p.enter(up) {
		return
	}
	p.wg.Go(func() { p.copy(up, c, p.wait) })
	p.copy(c, up, func(int) {})
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	delete(p.conns, up)
}

// copy passes bytes on until one of the connections ends, and waits for each part.
func (p *proxy) copy(dst, src net.Conn, wait func(n int)) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		wait(n)
		if !p.enter() || n > 0 && !written(dst, buf[:n]) || err != nil {
			return
		}
	}
}

func written(w io.Writer, b []byte) bool {
	_, err := w.Write(b)
	return err == nil
}

// mustFleet returns a Fleet that ends with the test. By default nodes may take long to
// answer, as the machine of a test may.
func mustFleet(t testing.TB, c FleetConfig) *Fleet {
	t.Helper()
	c.Timeout = cmp.Or(c.Timeout, time.Hour)
	f := must.Get(NewFleet(c))(t)
	t.Cleanup(f.Close)
	return f
}

// until waits until something holds. It fails the test only after a minute, so that no
// machine is too slow for it.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come to this in a minute: %s", what)
		}
	}
}

// isUp reports whether f has a connection to the node.
func (f *Fleet) isUp(addr string) bool {
	for _, n := range f.Nodes() {
		if n.Addr == addr {
			return n.Up
		}
	}
	return false
}

// keysOf returns n keys whose node is that with index i of the sorted addresses.
func keysOf(rule string, addrs []string, i, n int) (keys []string) {
	var nodes []*node
	for _, a := range addrs {
		nodes = append(nodes, &node{addr: a, hash: mix(fnv1a(fnvStart, a))})
	}
	for k := 0; len(keys) < n; k++ {
		key := "key-" + string(rune('a'+k%26)) + string(rune('a'+k/26%26)) + string(rune('a'+k/676))
		if best, _ := choose(nodes, hashOf(rule, key), 1<<64-1); best == nodes[i] {
			keys = append(keys, key)
		}
	}
	return keys
}
