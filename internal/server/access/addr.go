package access

import (
	"net"
	"net/netip"
)

// AddrOf returns the IP address of a connection's end, as a [ConnLimiter] takes
// it: IPv4 as IPv4 however the socket has it, and without a zone. It is the zero
// Addr for an end that has none, such as that of a socket in the file system. It
// does not allocate.
func AddrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().WithZone("").Unmap()
	}
	return netip.Addr{}
}
