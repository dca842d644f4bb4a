package latelyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"sync/atomic"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// IdentityConfig configures which proxies are trusted about the address of a client. Its zero
// value trusts no header: the client is the peer of the connection.
type IdentityConfig struct {
	// TrustedProxies are the networks of your proxies. The header of a peer
	// outside them is ignored. An IPv4-mapped prefix is the IPv4 one.
	//
	// Clients in these networks can claim any address. If there are any, set
	// Hops.
	TrustedProxies []netip.Prefix

	// TrustUnix makes peers on a Unix socket trusted proxies.
	TrustUnix bool

	// Hops is the largest number of proxies between a client and this server:
	// at most Hops addresses are read from the header, from the right, and the
	// last of them is the client even if it is in TrustedProxies. With 0, the
	// client is the first address outside TrustedProxies.
	Hops int

	// Header is the header that the proxies append to. "" is X-Forwarded-For;
	// "Forwarded" has the syntax of RFC 7239; any other (X-Real-Ip,
	// CF-Connecting-IP) that of X-Forwarded-For. No other header is read, since
	// clients can send headers that the proxies do not set.
	Header string

	// ProxiesAreClients means that hosts in TrustedProxies also send requests
	// of their own, without the header: the client is then the proxy's
	// address. By default it is "proxy:" and the address, which matches no
	// allow list, because some proxies let a client remove the header
	// (Connection: X-Forwarded-For).
	ProxiesAreClients bool

	// Fold sets the prefixes to which [Identity.AppendKey] cuts addresses; the
	// zero Fold cuts IPv6 to /64 and keeps IPv4. The rules of a Limiter use the
	// Fold of their own keys.
	Fold match.Fold
}

// An Identity finds the client of a request, safe against what clients write
// into headers.
//
// Addresses are parsed, never compared as text: IPv4-mapped IPv6 is IPv4 in every
// notation, and zones and ports are removed. A public IPv4 address under the prefix
// 64:ff9b::/96 (RFC 6052) is that IPv4 address, so that the clients of one translator
// do not share a key.
//
// If a trusted proxy does not name its client, because the header is missing or too
// short, or has something other than an address ("unknown", an obfuscated name), the
// client is that proxy, so that it shares no key with requests from elsewhere. Such
// requests are counted, see [Identity.Stats].
//
// An Identity does not allocate, and is safe for concurrent use. Its zero value trusts
// no header.
type Identity struct {
	config    IdentityConfig // with prefixes as addresses are looked up in them
	header    string         // canonical; "" without trusted proxies
	forwarded bool

	noHeader, badHeader, unknown atomic.Uint64
}

// NewIdentity returns the Identity of c. The error names the wrong field and what it
// must be.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	if _, err := match.NewKey(c.Fold, "client"); err != nil {
		return nil, fmt.Errorf("IdentityConfig.Fold: %w", err)
	}
	if c.Hops < 0 {
		return nil, fmt.Errorf("IdentityConfig.Hops: %d: must be 0 (any number of trusted proxies) or more", c.Hops)
	}
	if c.Header != "" && !isToken(c.Header) {
		return nil, fmt.Errorf("IdentityConfig.Header: %q: must be the name of a header such as X-Forwarded-For", c.Header)
	}
	id := &Identity{config: c}
	id.config.TrustedProxies = nil
	for _, p := range c.TrustedProxies {
		own, err := proxyPrefix(p)
		if err == nil && own.Bits() == 0 && c.Hops == 0 {
			err = fmt.Errorf("%v: trusts every address that a client claims: must be the networks of the proxies, or IdentityConfig.Hops must be their number", p)
		}
		if err != nil {
			return nil, fmt.Errorf("IdentityConfig.TrustedProxies: %w", err)
		}
		id.config.TrustedProxies = append(id.config.TrustedProxies, own)
	}
	if len(c.TrustedProxies) > 0 || c.TrustUnix {
		id.header = textproto.CanonicalMIMEHeaderKey(cmp.Or(c.Header, "X-Forwarded-For"))
		id.forwarded = id.header == "Forwarded"
	}
	return id, nil
}

// proxyPrefix returns p as addresses are looked up in it: unmapped.
func proxyPrefix(p netip.Prefix) (netip.Prefix, error) {
	switch {
	case !p.IsValid():
		return p, errors.New("invalid prefix: must be one such as 192.0.2.0/24")
	case p.Addr().Is4In6() && p.Bits() < 96:
		return p, fmt.Errorf("%v: spans IPv4 and IPv6: must be the IPv4 prefix", p)
	case p.Addr().Is4In6():
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Header returns the canonical name of the header that is read, or "" without trusted
// proxies.
func (id *Identity) Header() string { return id.header }

// Client returns the client of r. It reads r.RemoteAddr, which net/http sets to the
// peer of the connection; a middleware that overwrites it is trusted.
func (id *Identity) Client(r *http.Request) Client {
	addr, unix := peerOf(r)
	return id.counted(id.find(addr, unix, r.Header[id.header]))
}

// peerOf returns the address of r's peer, if it has one, and else whether it is on a Unix
// socket.
func peerOf(r *http.Request) (addr netip.Addr, unix bool) {
	addr, ok := address.Parse(r.RemoteAddr)
	if !ok {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		unix = local != nil && local.Network() == "unix"
	}
	return addr, unix
}

// ClientOf is Client for callers without an [http.Request]. It takes the peer of the
// connection, nil if it has no address, and all lines of the header that
// [Identity.Header] names, in order.
func (id *Identity) ClientOf(peer net.Addr, lines []string) Client {
	var addr netip.Addr
	unix := false
	switch p := peer.(type) {
	case nil:
	case *net.TCPAddr:
		addr = p.AddrPort().Addr().WithZone("").Unmap()
	case *net.UnixAddr:
		unix = true
	default:
		addr, _ = address.Parse(p.String())
	}
	return id.counted(id.find(addr, unix, lines))
}

// counted counts a request of c for Stats.
func (id *Identity) counted(c Client) Client {
	switch c.origin {
	case noHeader:
		id.noHeader.Add(1)
	case badHeader:
		id.badHeader.Add(1)
	case unknown:
		id.unknown.Add(1)
	}
	return c
}

// find returns the client of a request from that peer: it walks back through the
// header, in which each trusted proxy appended the address that it saw. An invalid peer
// is on a Unix socket if unix is set, and otherwise unknown.
func (id *Identity) find(peer netip.Addr, unix bool, lines []string) Client {
	at := Client{Addr: peer, plain: true}
	if !peer.IsValid() && !unix {
		at.origin = unknown
		return at
	}
	if unix && !id.config.TrustUnix || !unix && !id.trusts(peer) {
		at.Addr = translated(peer)
		return at
	}
	hops := chain{lines: lines, forwarded: id.forwarded}
	for n := 1; ; n++ {
		node, more := hops.previous()
		if !more { // the last proxy does not name its client
			at.origin, at.plain = noHeader, id.config.ProxiesAreClients
			return at
		}
		addr, ok := address.Parse(node)
		if !ok {
			at.origin, at.plain = badHeader, id.config.ProxiesAreClients
			return at
		}
		at.Addr, at.origin = addr, fromHeader
		if n == id.config.Hops || !id.trusts(addr) {
			break
		}
	}
	at.Addr = translated(at.Addr)
	return at
}

func (id *Identity) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(id.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// AppendKey appends to dst the key of r's client: its address cut to the prefix
// of Fold, or, without an address, the text of [Client.AppendTo]. It does not
// count for [Identity.Stats]: Client or the middleware has counted r.
func (id *Identity) AppendKey(dst []byte, r *http.Request) []byte {
	var text [maxClientText]byte
	addr, unix := peerOf(r)
	return keyvalue.AppendClient(dst, id.config.Fold, id.find(addr, unix, r.Header[id.header]).AppendTo(text[:0]))
}

// IdentityStats counts the requests for which an [Identity] found no client's address.
// Steady growth of NoHeader or BadHeader means a misconfigured proxy, or clients that
// remove its header.
type IdentityStats struct {
	NoHeader  uint64 // a trusted proxy did not name its client
	BadHeader uint64 // a trusted proxy wrote something other than an address
	Unknown   uint64 // the peer had no address
}

// Stats returns the counts since id was made.
func (id *Identity) Stats() IdentityStats {
	return IdentityStats{id.noHeader.Load(), id.badHeader.Load(), id.unknown.Load()}
}

// wellKnown is where RFC 6052 puts IPv4 addresses for translators (NAT64).
var wellKnown = netip.MustParsePrefix("64:ff9b::/96")

// translated returns the IPv4 address that a translator put into a, and any
// other address unchanged. The well-known prefix must not carry addresses that
// are not global (RFC 6052, section 3.1): such an address is returned unchanged.
func translated(a netip.Addr) netip.Addr {
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

// SetClient gives ev, an event of a log, the client that [Identity.Client] returns for the
// request: with ev's client as the peer, and its field x_forwarded_for. A client that is not
// an address stays.
func (id *Identity) SetClient(ev *match.Event) {
	peer, ok := address.Parse(string(ev.Get(match.Client)))
	if !ok {
		return
	}
	var lines []string
	if list := ev.GetNamed(eventfield.ForwardedFor); len(list) > 0 {
		lines = []string{string(list)}
	}
	client := id.ClientOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(peer, 0)), lines)
	ev.Set(match.Client, client.AppendTo(nil))
}
