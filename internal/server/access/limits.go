package access

import (
	"cmp"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bounds what a listener accepts, and how long it waits for its clients when it
// shuts down. A field that is 0 has its default.
type Limits struct {
	// MaxConnections bounds the connections; by default 10,000.
	MaxConnections int

	// PeerConnections bounds the connections of one peer, see [ConnLimiter]; by
	// default half of MaxConnections.
	PeerConnections int

	// MaxSubscribers bounds the subscribers to events; by default 2,048.
	MaxSubscribers int

	// IdleTimeout is how long a connection may be without a request before it is closed; by default
	// 5 minutes, less than 0 for ever. A subscriber is never idle.
	IdleTimeout time.Duration

	// ShutdownTimeout is how long a listener waits for requests in progress; by default
	// 10 seconds.
	ShutdownTimeout time.Duration
}

// WithDefaults returns l with its defaults.
func (l Limits) WithDefaults() Limits {
	l.MaxConnections = cmp.Or(l.MaxConnections, 10_000)
	l.PeerConnections = cmp.Or(l.PeerConnections, max(l.MaxConnections/2, 1))
	l.MaxSubscribers = cmp.Or(l.MaxSubscribers, 2048)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 5*time.Minute)
	l.ShutdownTimeout = cmp.Or(l.ShutdownTimeout, 10*time.Second)
	return l
}

// A ConnLimiter bounds the connections of a listener, in total and per peer, so that
// neither many clients nor one take all file descriptors.
//
// A peer is an IPv4 address, or the /64 network of an IPv6 address, which usually has
// one owner. All connections without an address, as on a Unix socket, count as one
// peer.
//
// It is safe for concurrent use. Make one with [NewConnLimiter]. It takes memory for
// peers with open connections only.
type ConnLimiter struct {
	most, each int

	mu                sync.Mutex
	open              int
	accepted, refused uint64
	peers             map[netip.Addr]int // open connections, never 0
}

// NewConnLimiter returns a ConnLimiter that allows up to most connections, and up to
// each of one peer. With less than 1 it allows none.
func NewConnLimiter(most, each int) *ConnLimiter {
	return &ConnLimiter{most: most, each: each, peers: make(map[netip.Addr]int)}
}

// Enter reports whether a connection of peer is allowed, and counts it. If it returns
// true, [ConnLimiter.Leave] must be called when the connection is closed.
func (l *ConnLimiter) Enter(peer netip.Addr) bool {
	peer = bucket(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || l.peers[peer] >= l.each {
		l.refused++
		return false
	}
	l.open++
	l.accepted++
	l.peers[peer]++
	return true
}

// Leave is called once for each connection that was allowed, when it is closed.
func (l *ConnLimiter) Leave(peer netip.Addr) {
	peer = bucket(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.peers[peer]--; l.peers[peer] <= 0 {
		delete(l.peers, peer)
	}
}

// Counts returns how many connections are open, and how many were allowed and refused
// so far.
func (l *ConnLimiter) Counts() (open int, accepted, refused uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.accepted, l.refused
}

// bucket returns the address that stands for all addresses of a peer.
func bucket(peer netip.Addr) netip.Addr {
	peer = peer.Unmap()
	if p, err := peer.Prefix(64); err == nil && peer.Is6() {
		return p.Addr()
	}
	return peer
}

// AddrOf returns the IP address of a connection's end, as a [ConnLimiter] takes it:
// IPv4 as IPv4 whatever the socket has, and without a zone. It is the zero Addr for a
// Unix socket. It does not allocate.
func AddrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().WithZone("").Unmap()
	}
	return netip.Addr{}
}

// PeerName returns what logs call a peer: its address, or "unix" for one on a Unix socket.
func PeerName(peer netip.Addr) string {
	if !peer.IsValid() {
		return "unix"
	}
	return peer.String()
}

// A Budget bounds the memory of requests and replies in transit, over all connections
// of all listeners: requests that have not been received completely, and replies that
// have not been read. Small buffers, which each connection has anyway, are not charged.
//
// It is safe for concurrent use. Make one with [NewBudget]. It satisfies resp.Budget.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// DefaultBudget is the size of a Budget that is not given one: 64 MiB.
const DefaultBudget = 64 << 20

// NewBudget returns a Budget of limit bytes; 0 means DefaultBudget.
func NewBudget(limit int64) *Budget { return &Budget{limit: cmp.Or(limit, DefaultBudget)} }

// Take takes n bytes, and reports whether there were so many left.
func (b *Budget) Take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

// Give gives n bytes back.
func (b *Budget) Give(n int) { b.used.Add(-int64(n)) }

// Scarce reports whether more than half of b is taken. Then memory that would only
// improve speed is not given out.
func (b *Budget) Scarce() bool { return b.used.Load() > b.limit/2 }

// Stats returns the size of b and the used bytes.
func (b *Budget) Stats() (limit, used int64) { return b.limit, b.used.Load() }
