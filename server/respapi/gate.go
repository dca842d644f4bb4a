package respapi

import (
	"net"
	"net/netip"
	"sync"
)

// A gate bounds the connections, in all and of each peer, so that neither many
// clients nor one take all descriptors.
type gate struct {
	most, each int

	mu                sync.Mutex
	open              int
	accepted, refused uint64
	peers             map[netip.Addr]int
}

func (g *gate) init(most, each int) {
	g.most, g.each, g.peers = most, each, make(map[netip.Addr]int)
}

// enter reports whether there is room for a connection of peer.
func (g *gate) enter(peer netip.Addr) bool {
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

func (g *gate) leave(peer netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.peers[peer]--; g.peers[peer] == 0 {
		delete(g.peers, peer)
	}
}

func (g *gate) counts() (open int, accepted, refused uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.accepted, g.refused
}

// peerOf returns the address of a peer, the zero Addr for one that has none.
func peerOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().WithZone("").Unmap()
	}
	return netip.Addr{}
}
