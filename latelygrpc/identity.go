package latelygrpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// forwardedFor is the metadata in which a proxy says whom it calls for.
const forwardedFor = "x-forwarded-for"

// An identity finds who calls. It gives a client the text that
// latelyhttp.Identity gives it, so that one Limiter can stand before both.
type identity struct {
	trusted   []netip.Prefix
	trustUnix bool
	hops      int
	direct    bool

	noHeader, badHeader, unknown atomic.Uint64
}

// IdentityStats is how often an [Interceptor] had no client's address to count
// by. Steady growth of NoHeader or BadHeader means a proxy that is set up
// wrongly.
type IdentityStats struct {
	NoHeader  uint64 // a trusted proxy sent no x-forwarded-for
	BadHeader uint64 // a trusted proxy sent something else than an address
	Unknown   uint64 // the peer had no address
}

// IdentityStats returns the counts since i was made. Calls under rules that do
// not look at the client are not in them.
func (i *Interceptor) IdentityStats() IdentityStats {
	return IdentityStats{
		NoHeader:  i.identity.noHeader.Load(),
		BadHeader: i.identity.badHeader.Load(),
		Unknown:   i.identity.unknown.Load(),
	}
}

func (id *identity) init(c *Config) error {
	if c.Hops < 0 {
		return fmt.Errorf("Config.Hops is %d; allowed is 0 (any number of trusted proxies) or more", c.Hops)
	}
	for _, p := range c.TrustedProxies {
		switch {
		case !p.IsValid():
			return errors.New("Config.TrustedProxies has an invalid prefix; allowed are prefixes such as 192.0.2.0/24, see match.ParsePrefix")
		case p.Bits() == 0 && c.Hops == 0:
			return fmt.Errorf("Config.TrustedProxies has %v, so every address that a client claims would be believed; name the proxies' networks, or their number in Config.Hops", p)
		case p.Addr().Is4In6() && p.Bits() >= 96:
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		case p.Addr().Is4In6():
			return fmt.Errorf("Config.TrustedProxies has %v, which spans IPv4 and IPv6; write the IPv4 prefix", p)
		}
		id.trusted = append(id.trusted, p.Masked())
	}
	id.trustUnix, id.hops, id.direct = c.TrustUnix, c.Hops, c.ProxiesAreClients
	return nil
}

// appendClient appends who calls: an address, "unix" or "unknown", with "proxy:"
// in front where a trusted proxy did not say whom it speaks for.
func (id *identity) appendClient(dst []byte, c *Call) []byte {
	addr, unix := peerOf(c)
	switch {
	case !addr.IsValid() && !unix:
		id.unknown.Add(1)
		return append(dst, "unknown"...)
	case unix && !id.trustUnix || !unix && !id.trusts(addr):
		return appendAddr(dst, addr)
	}
	values := metadata.ValueFromIncomingContext(c.ctx, forwardedFor)
	if len(values) == 0 {
		id.noHeader.Add(1)
		return appendAddr(id.appendProxy(dst), addr)
	}
	addr, ok := id.walk(addr, values)
	if !ok {
		id.badHeader.Add(1)
		return appendAddr(id.appendProxy(dst), addr)
	}
	return appendAddr(dst, addr)
}

func (id *identity) appendProxy(dst []byte) []byte {
	if id.direct {
		return dst
	}
	return append(dst, "proxy:"...)
}

// walk goes from the proxy at addr to the client, each trusted proxy vouching
// for the address that it appended: from the end of the last value to the first
// address that is no trusted proxy. It reports false, with the last proxy that
// vouched, when it meets something else than an address.
func (id *identity) walk(addr netip.Addr, values []string) (netip.Addr, bool) {
	hops := 0
	for n := len(values) - 1; n >= 0; n-- {
		for rest, more := values[n], true; more; {
			var entry string
			rest, entry, more = cutLast(rest)
			hop, ok := parseNode(strings.Trim(entry, " \t"))
			if !ok {
				return addr, false
			}
			addr = hop
			if hops++; hops == id.hops || !id.trusts(addr) {
				return addr, true
			}
		}
	}
	return addr, true
}

// cutLast cuts a list at its last comma.
func cutLast(list string) (rest, last string, more bool) {
	at := strings.LastIndexByte(list, ',')
	return list[:max(at, 0)], list[at+1:], at >= 0
}

func (id *identity) trusts(a netip.Addr) bool {
	for _, p := range id.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// peerOf returns the address of the call's peer, and whether it is on a Unix
// socket, where there is none.
func peerOf(c *Call) (addr netip.Addr, unix bool) {
	p, ok := peer.FromContext(c.ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}, false
	}
	switch a := p.Addr.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().WithZone("").Unmap(), false
	case *net.UnixAddr:
		return netip.Addr{}, true
	}
	addr, _ = parseNode(p.Addr.String()) // of a grpc.Server under net/http
	return addr, false
}

// parseNode parses an address as proxies write it: bare, in brackets, with a
// port behind it, with a zone. It drops port and zone and unmaps the address.
func parseNode(s string) (netip.Addr, bool) {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok := strings.Cut(inside, "]")
		if !ok || port != "" && (port[0] != ':' || !isPort(port[1:])) {
			return netip.Addr{}, false
		}
		s = host
	} else if host, port, ok := strings.Cut(s, ":"); ok && !strings.Contains(port, ":") {
		if !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	}
	if host, zone, ok := strings.Cut(s, "%"); ok {
		if zone == "" || !strings.Contains(host, ":") {
			return netip.Addr{}, false
		}
		s = host
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil
}

// isPort reports whether s is up to five digits.
func isPort(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 5
}

// wellKnown is where RFC 6052 puts IPv4 addresses for translators (NAT64).
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// appendAddr appends the text of a, or "unix" when there is no address. A
// translated IPv4 address is that IPv4 address if it is a public one, since the
// prefix must carry no other.
func appendAddr(dst []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return append(dst, "unix"...)
	}
	if a.Is6() && wellKnown.Contains(a) {
		b := a.As16()
		v4 := netip.AddrFrom4([4]byte(b[12:]))
		if v4.IsGlobalUnicast() && !v4.IsPrivate() && b[12] != 0 {
			a = v4
		}
	}
	return a.AppendTo(dst)
}
