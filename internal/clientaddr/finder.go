package clientaddr

import (
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"slices"
	"sync/atomic"

	"github.com/lately-go/lately/match"
)

// A Config says which proxies to trust. Its fields are those of
// latelyhttp.IdentityConfig, which documents them.
type Config struct {
	TrustedProxies    []netip.Prefix
	TrustUnix         bool
	Hops              int
	Header            string
	ProxiesAreClients bool
	Fold              match.Fold
}

// A Finder finds clients. It does not allocate, except for some malformed addresses,
// and is safe for concurrent use. Its zero value trusts no header.
type Finder struct {
	config    Config // with prefixes as addresses are looked up in them
	header    string // canonical; "" without trusted proxies
	forwarded bool

	noHeader, badHeader, unknown atomic.Uint64
}

// Init makes f the Finder of c, whose fields are called fields of what in errors.
func (f *Finder) Init(c Config, what string) error {
	if err := c.Fold.Validate(); err != nil {
		return fmt.Errorf("%s.Fold: %w", what, err)
	}
	if c.Hops < 0 {
		return fmt.Errorf("%s.Hops: %d: must be 0 (any number of trusted proxies) or more", what, c.Hops)
	}
	f.config = c
	f.config.TrustedProxies = nil
	for _, p := range c.TrustedProxies {
		own, err := proxyPrefix(p, what)
		if err != nil {
			return err
		}
		if own.Bits() == 0 && c.Hops == 0 {
			return fmt.Errorf("%s.TrustedProxies: %v: trusts every address that a client claims: must be the networks of the proxies, or %[1]s.Hops must be their number", what, p)
		}
		f.config.TrustedProxies = append(f.config.TrustedProxies, own)
	}
	if c.Header != "" && !IsToken(c.Header) {
		return fmt.Errorf("%s.Header: %q: must be the name of a header such as X-Forwarded-For", what, c.Header)
	}
	if len(c.TrustedProxies) > 0 || c.TrustUnix {
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
		return p, fmt.Errorf("%s.TrustedProxies: %v: spans IPv4 and IPv6: must be the IPv4 prefix", what, p)
	case p.Addr().Is4In6():
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Header returns the canonical name of the header that is read, or "" without trusted
// proxies.
func (f *Finder) Header() string { return f.header }

// Peer returns the client of a request from that peer, with these lines of the header
// that [Finder.Header] names. A nil peer has no address.
func (f *Finder) Peer(peer net.Addr, lines []string) Client {
	switch p := peer.(type) {
	case nil:
	case *net.TCPAddr:
		return f.Find(p.AddrPort().Addr().WithZone("").Unmap(), false, lines)
	case *net.UnixAddr:
		return f.Find(netip.Addr{}, true, lines)
	default:
		if addr, ok := match.ParseAddr(p.String()); ok {
			return f.Find(addr, false, lines)
		}
	}
	return f.Find(netip.Addr{}, false, lines)
}

// Find returns the client of a request from that peer: it walks back through the
// header, in which each trusted proxy appended the address that it saw. An invalid peer
// is on a Unix socket if unix is set, and otherwise unknown.
func (f *Finder) Find(peer netip.Addr, unix bool, lines []string) Client {
	at := Client{Addr: peer, Plain: true}
	if !peer.IsValid() && !unix {
		f.unknown.Add(1)
		at.Source = Unknown
		return at
	}
	if unix && !f.config.TrustUnix || !unix && !f.trusts(peer) {
		at.Addr = Translated(peer)
		return at
	}
	hops := chain{lines: lines, forwarded: f.forwarded}
	for n := 1; ; n++ {
		node, more := hops.previous()
		if !more { // the last proxy does not name its client
			f.noHeader.Add(1)
			at.Source, at.Plain = NoHeader, f.config.ProxiesAreClients
			return at
		}
		addr, ok := match.ParseAddr(node)
		if !ok {
			f.badHeader.Add(1)
			at.Source, at.Plain = BadHeader, f.config.ProxiesAreClients
			return at
		}
		at.Addr, at.Source = addr, FromHeader
		if n == f.config.Hops || !f.trusts(addr) {
			break
		}
	}
	at.Addr = Translated(at.Addr)
	return at
}

func (f *Finder) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(f.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// AppendKey appends the key of c to dst: its address as Fold has it, or the text of
// [Client.AppendTo] if it has none.
func (f *Finder) AppendKey(dst []byte, c Client) []byte {
	var text [MaxText]byte
	return f.config.Fold.Append(dst, c.AppendTo(text[:0]))
}

// Stats is how often a Finder did not find the address of a client, by [Source].
type Stats struct {
	NoHeader, BadHeader, Unknown uint64
}

// Stats returns the counts since f was made.
func (f *Finder) Stats() Stats {
	return Stats{f.noHeader.Load(), f.badHeader.Load(), f.unknown.Load()}
}

// wellKnown is where RFC 6052 puts IPv4 addresses for translators (NAT64).
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// Translated returns the IPv4 address that a translator put into a, and any
// other address as it is. The well-known prefix must not carry addresses that
// are not global (RFC 6052, section 3.1): those are no translation.
func Translated(a netip.Addr) netip.Addr {
	if !a.Is6() || !wellKnown.Contains(a) {
		return a
	}
	b := a.As16()
	v4 := netip.AddrFrom4([4]byte(b[12:]))
	if !v4.IsGlobalUnicast() || v4.IsPrivate() || v4.As4()[0] == 0 {
		return a
	}
	return v4
}
