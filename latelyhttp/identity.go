package latelyhttp

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/match"
)

// IdentityConfig says which proxies to trust about the address of a client. Its zero
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

	// Hops is the largest number of proxies between a client and this
	// server: at most so many addresses are read from the header, from the
	// right, and the last of them is the client even if it is in
	// TrustedProxies. With 0, the client is the first address that is not of a
	// trusted proxy.
	Hops int

	// Header is the header that the proxies append to. "" is X-Forwarded-For;
	// "Forwarded" has the syntax of RFC 7239; any other (X-Real-Ip,
	// CF-Connecting-IP) that of X-Forwarded-For. No other header is read, since
	// clients can send headers that the proxies do not set.
	Header string

	// ProxiesAreClients says that hosts in TrustedProxies also send requests
	// of their own, without the header: the client is then the proxy's
	// address. By default it is "proxy:" and the address, which matches no
	// allow list, because some proxies let a client remove the header
	// (Connection: X-Forwarded-For).
	ProxiesAreClients bool

	// Fold is how [Identity.AppendKey] cuts addresses to prefixes; the zero
	// Fold is IPv6 by /64 and IPv4 whole. The rules of a Limiter use the Fold
	// of their own keys.
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
	finder clientaddr.Finder
}

// NewIdentity returns the Identity of c. The error names the wrong field and what it
// must be.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	id := new(Identity)
	if err := id.finder.Init(clientaddr.Config(c), "IdentityConfig"); err != nil {
		return nil, err
	}
	return id, nil
}

// Header returns the canonical name of the header that is read, or "" without trusted
// proxies.
func (id *Identity) Header() string { return id.finder.Header() }

// Client returns the client of r. It reads r.RemoteAddr, which net/http sets to the
// peer of the connection; a middleware that overwrites it is trusted.
func (id *Identity) Client(r *http.Request) Client {
	lines := r.Header[id.finder.Header()]
	addr, ok := match.ParseAddr(r.RemoteAddr)
	if ok {
		return clientOf(id.finder.Find(addr, false, lines))
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return clientOf(id.finder.Find(netip.Addr{}, local != nil && local.Network() == "unix", lines))
}

// ClientOf is Client for callers without an [http.Request]. It takes the peer of the
// connection and all lines of the header that [Identity.Header] names, in order.
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
	return IdentityStats(id.finder.Stats())
}
