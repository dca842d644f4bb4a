package clientaddr

import (
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"sync/atomic"
)

// Config says whom to believe. Its zero value believes no header.
type Config struct {
	// TrustedProxies are the networks of one's own proxies. The header of a peer
	// outside them is ignored. An IPv4-mapped prefix is the IPv4 one.
	TrustedProxies []netip.Prefix

	// TrustUnix makes peers on a Unix socket trusted proxies.
	TrustUnix bool

	// Hops is the largest number of addresses that are read from the header, from
	// the right; the last of them is the client even if it is in TrustedProxies.
	// 0 reads on until an address is not of a trusted proxy.
	Hops int

	// Header is the header that the proxies append to. "" is X-Forwarded-For;
	// Forwarded is read as RFC 7239 has it, any other like X-Forwarded-For.
	Header string

	// ProxiesAreClients says that trusted proxies also send requests of their own:
	// the text of such a client has no "proxy:" in front.
	ProxiesAreClients bool
}

// A Finder finds clients. It does not allocate, but for some junk, and is safe for
// concurrent use. Its zero value believes no header.
type Finder struct {
	trusted   []netip.Prefix
	trustUnix bool
	hops      int
	header    string // canonical; "" when there is nobody to believe
	forwarded bool
	direct    bool

	noHeader, badHeader, unknown atomic.Uint64
}

// Init makes f the Finder of c. The error names the bad field, as one of the
// configuration called what, its value and what it must be.
func (f *Finder) Init(c Config, what string) error {
	if c.Hops < 0 {
		return fmt.Errorf("%s.Hops: %d: must be 0 (any number of trusted proxies) or more", what, c.Hops)
	}
	for _, p := range c.TrustedProxies {
		own, err := proxyPrefix(p, what)
		if err != nil {
			return err
		}
		if own.Bits() == 0 && c.Hops == 0 {
			return fmt.Errorf("%s.TrustedProxies has %v, so every address that a client claims would be believed; name the proxies' networks, or their number in %[1]s.Hops", what, p)
		}
		f.trusted = append(f.trusted, own)
	}
	if c.Header != "" && !IsToken(c.Header) {
		return fmt.Errorf("%s.Header: %q: must be the name of a header such as X-Forwarded-For", what, c.Header)
	}
	f.trustUnix, f.hops, f.direct = c.TrustUnix, c.Hops, c.ProxiesAreClients
	if len(f.trusted) > 0 || f.trustUnix {
		f.header = "X-Forwarded-For"
		if c.Header != "" {
			f.header = textproto.CanonicalMIMEHeaderKey(c.Header)
		}
		f.forwarded = f.header == "Forwarded"
	}
	return nil
}

// proxyPrefix returns p as addresses are looked up in it: unmapped.
func proxyPrefix(p netip.Prefix, what string) (netip.Prefix, error) {
	switch {
	case !p.IsValid():
		return p, fmt.Errorf("%s.TrustedProxies: invalid prefix: must be one such as 192.0.2.0/24, see match.ParsePrefix", what)
	case p.Addr().Is4In6() && p.Bits() < 96:
		return p, fmt.Errorf("%s.TrustedProxies has %v, which spans IPv4 and IPv6; write the IPv4 prefix", what, p)
	case p.Addr().Is4In6():
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Header returns the canonical name of the header that is read, or "" when there is
// no proxy to believe.
func (f *Finder) Header() string { return f.header }

// Peer returns who sent a request that came from that peer, whose header that
// [Finder.Header] names has these lines. A nil peer has no address.
func (f *Finder) Peer(peer net.Addr, lines []string) Client {
	switch p := peer.(type) {
	case nil:
	case *net.TCPAddr:
		return f.Find(p.AddrPort().Addr().WithZone("").Unmap(), false, lines)
	case *net.UnixAddr:
		return f.Find(netip.Addr{}, true, lines)
	default:
		if addr, ok := ParseNode(p.String()); ok {
			return f.Find(addr, false, lines)
		}
	}
	return f.Find(netip.Addr{}, false, lines)
}

// Find walks from the peer of the connection to the client: each trusted hop vouches
// for the address that it appended. An invalid peer is one on a Unix socket if unix is
// set, and else unknown.
func (f *Finder) Find(peer netip.Addr, unix bool, lines []string) Client {
	at := Client{Addr: peer, Plain: true}
	if !peer.IsValid() && !unix {
		f.unknown.Add(1)
		at.Source = Unknown
		return at
	}
	if unix && !f.trustUnix || !unix && !f.trusts(peer) {
		at.Addr = Translated(peer)
		return at
	}
	hops := chain{lines: lines, forwarded: f.forwarded}
	for n := 1; ; n++ {
		node, more := hops.previous()
		if !more { // the first proxy does not say whom it speaks for
			f.noHeader.Add(1)
			at.Source, at.Plain = NoHeader, f.direct
			return at
		}
		addr, ok := ParseNode(node)
		if !ok {
			f.badHeader.Add(1)
			at.Source, at.Plain = BadHeader, f.direct
			return at
		}
		at.Addr, at.Source = addr, FromHeader
		if n == f.hops || !f.trusts(addr) {
			break
		}
	}
	at.Addr = Translated(at.Addr)
	return at
}

func (f *Finder) trusts(a netip.Addr) bool {
	for _, p := range f.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Stats is how often a Finder had no client's address to give.
type Stats struct {
	NoHeader  uint64 // a trusted proxy did not say whom it speaks for
	BadHeader uint64 // a trusted proxy wrote something else than an address
	Unknown   uint64 // the peer had no address
}

// Stats returns the counts since f was made.
func (f *Finder) Stats() Stats {
	return Stats{f.noHeader.Load(), f.badHeader.Load(), f.unknown.Load()}
}
