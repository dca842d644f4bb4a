package latelygrpc

import (
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// forwardedFor is the metadata in which a proxy names its client.
const forwardedFor = "x-forwarded-for"

// IdentityStats counts the calls for which an [Interceptor] found no client's address.
// Steady growth of NoHeader or BadHeader means a misconfigured proxy.
type IdentityStats struct {
	NoHeader  uint64 // a trusted proxy sent no x-forwarded-for
	BadHeader uint64 // a trusted proxy sent something other than an address
	Unknown   uint64 // the peer had no address
}

// IdentityStats returns the counts since i was made. Calls under rules that do not use
// the client are not counted.
func (i *Interceptor) IdentityStats() IdentityStats {
	return IdentityStats(i.identity.Stats())
}

// caller returns the client, which it finds once.
func (c *Call) caller() []byte {
	if len(c.client) > 0 {
		return c.client
	}
	var addr net.Addr
	if p, ok := peer.FromContext(c.ctx); ok {
		addr = p.Addr
	}
	var values []string
	if c.identity.Header() != "" {
		values = metadata.ValueFromIncomingContext(c.ctx, forwardedFor)
	}
	c.client = c.identity.ClientOf(addr, values).AppendTo(c.client)
	return c.client
}
