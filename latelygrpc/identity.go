package latelygrpc

import (
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lately-go/lately/internal/clientaddr"
)

// forwardedFor is the metadata in which a proxy says whom it calls for.
const forwardedFor = "x-forwarded-for"

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
	return IdentityStats(i.identity.Stats())
}

// initFinder makes f find the callers of a server with c, in the same way as latelyhttp.Identity, so
// that one Limiter can stand before both.
func initFinder(f *clientaddr.Finder, c *Config) error {
	return f.Init(clientaddr.Config{
		TrustedProxies: c.TrustedProxies, TrustUnix: c.TrustUnix, Hops: c.Hops, ProxiesAreClients: c.ProxiesAreClients,
	}, "Config")
}

// appendClient appends who calls.
func appendClient(dst []byte, f *clientaddr.Finder, c *Call) []byte {
	var addr net.Addr
	if p, ok := peer.FromContext(c.ctx); ok {
		addr = p.Addr
	}
	var values []string
	if f.Header() != "" {
		values = metadata.ValueFromIncomingContext(c.ctx, forwardedFor)
	}
	return f.Peer(addr, values).AppendTo(dst)
}
