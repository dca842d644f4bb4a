package access

import (
	"net/netip"
	"sync"
)

// A ConnLimiter bounds the connections of a listener, in all and of each peer, so that
// neither many clients nor one take all descriptors.
//
// A peer is an IPv4 address, or the /64 of an IPv6 one: its owner has them all.
// Connections without an address, such as those of a socket in the file system,
// are of one peer.
//
// It is safe for concurrent use. Make one with [NewConnLimiter]; the zero ConnLimiter lets
// nobody in. It takes memory for peers with open connections only.
type ConnLimiter struct {
	most, each int

	mu                sync.Mutex
	open              int
	accepted, refused uint64
	peers             map[netip.Addr]int // open connections, never 0
}

// NewConnLimiter returns a ConnLimiter that lets in up to most connections, of which each peer
// has up to each. With less than 1 there is room for none.
func NewConnLimiter(most, each int) *ConnLimiter {
	return &ConnLimiter{most: most, each: each, peers: make(map[netip.Addr]int)}
}

// Enter lets in a connection of peer and returns true, or counts it as refused and
// returns false. Who was let in has to [ConnLimiter.Leave].
func (g *ConnLimiter) Enter(peer netip.Addr) bool {
	peer = bucket(peer)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.most || g.peers[peer] >= g.each {
		g.refused++
		return false
	}
	g.open++
	g.accepted++
	g.peers[peer]++
	return true
}

// Leave makes the room again that a connection of peer has taken. It is called
// once for each that was let in.
func (g *ConnLimiter) Leave(peer netip.Addr) {
	peer = bucket(peer)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.peers[peer]--; g.peers[peer] <= 0 {
		delete(g.peers, peer)
	}
}

// Counts returns how many connections are open now, and how many were let in and
// refused so far.
func (g *ConnLimiter) Counts() (open int, accepted, refused uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.accepted, g.refused
}

// bucket returns the address that stands for all of a peer's.
func bucket(peer netip.Addr) netip.Addr {
	if !peer.Is6() || peer.Is4In6() {
		return peer.Unmap()
	}
	p, err := peer.Prefix(64)
	if err != nil {
		return peer // unreachable: an IPv6 address has 64 bits
	}
	return p.Addr()
}
