package latelyhttp

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/match"
)

// IdentityConfig is whom to believe about who a client is. Its zero value
// believes no header: the client is the peer of the connection.
type IdentityConfig struct {
	// TrustedProxies are the networks of one's own proxies. The header of a
	// peer outside them is ignored. An IPv4-mapped prefix is the IPv4 one.
	//
	// A network that holds clients too makes these clients proxies: they can
	// then claim any address. Name Hops in that case.
	TrustedProxies []netip.Prefix

	// TrustUnix makes peers on a Unix socket trusted proxies.
	TrustUnix bool

	// Hops is the largest number of proxies between a client and this
	// server: so many addresses are read from the header, from the right,
	// and the last of them is the client even if it is in TrustedProxies.
	// 0 reads on until an address is not of a trusted proxy.
	Hops int

	// Header is the header that the proxies append to. "" is
	// X-Forwarded-For; "Forwarded" is read as RFC 7239 has it; any other
	// (X-Real-Ip, CF-Connecting-IP) is read like X-Forwarded-For. Only this
	// one is read: a header that the proxies do not maintain is the client's.
	Header string

	// ProxiesAreClients says that hosts in TrustedProxies also send requests
	// of their own, without the header: the client is then the proxy's
	// address as it stands. By default it is "proxy:" and the address, which
	// no allow list holds, because some proxies let a client strip the
	// header (Connection: X-Forwarded-For).
	ProxiesAreClients bool

	// Fold is how [Identity.AppendKey] cuts addresses to prefixes; the zero
	// Fold is IPv6 by /64 and IPv4 whole. The rules of a Limiter fold by
	// their own keys and do not look at it.
	Fold match.Fold
}

// An Identity finds the client of a request, safe against what clients write
// into headers.
//
// Addresses are taken apart, never compared as text: IPv4-mapped IPv6 is IPv4
// in every notation, zones and ports are dropped, and an IPv4 address that was
// translated with the well-known prefix 64:ff9b::/96 of RFC 6052 is that IPv4
// address, if it is a public one (the prefix may carry no other), so that the
// clients of one translator do not share a key.
//
// Where a trusted proxy does not say whom it speaks for, because there is no
// header, or none of it is left, or something else than an address stands there
// (junk, "unknown", an obfuscated name), the client is that proxy: never a key
// that requests from elsewhere end up in. This is counted, see
// [Identity.Stats].
//
// An Identity does not allocate, but for some junk, and is safe for concurrent use. Its zero value
// believes no header.
type Identity struct {
	finder clientaddr.Finder
}

// NewIdentity returns the Identity of c. The error names the field that cannot
// be, and what is allowed.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	id := new(Identity)
	if err := id.finder.Init(clientaddr.Config(c), "IdentityConfig"); err != nil {
		return nil, err
	}
	return id, nil
}

// Header returns the canonical name of the header that is read, or "" when
// there is no proxy to believe.
func (id *Identity) Header() string { return id.finder.Header() }

// Client returns who sent r. It reads r.RemoteAddr, which net/http fills with
// the socket's peer: a middleware that overwrites it is believed.
func (id *Identity) Client(r *http.Request) Client {
	lines := r.Header[id.finder.Header()]
	addr, ok := match.ParseAddr(r.RemoteAddr)
	if ok {
		return clientOf(id.finder.Find(addr, false, lines))
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return clientOf(id.finder.Find(netip.Addr{}, local != nil && local.Network() == "unix", lines))
}

// ClientOf is Client for callers without an [http.Request]: from the socket's
// peer and all lines of the header that [Identity.Header] names, in order.
func (id *Identity) ClientOf(peer net.Addr, lines []string) Client {
	return clientOf(id.finder.Peer(peer, lines))
}

func clientOf(c clientaddr.Client) Client {
	return Client{Addr: c.Addr, Source: Source(c.Source), plain: c.Plain}
}

// AppendKey appends to dst the key of r's client: its address cut to the
// prefix that Fold says, or the text of [Client.AppendTo] for one without.
func (id *Identity) AppendKey(dst []byte, r *http.Request) []byte {
	return id.finder.AppendKey(dst, id.Client(r).inner())
}

// IdentityStats is how often an [Identity] had no client's address to give.
// Steady growth of NoHeader or BadHeader means a proxy that is set up wrongly,
// or clients that strip its header.
type IdentityStats struct {
	NoHeader  uint64 // a trusted proxy did not say whom it speaks for
	BadHeader uint64 // a trusted proxy wrote something else than an address
	Unknown   uint64 // the peer had no address
}

// Stats returns the counts since id was made.
func (id *Identity) Stats() IdentityStats {
	return IdentityStats(id.finder.Stats())
}
