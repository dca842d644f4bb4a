package latelygrpc

import (
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lately-go/lately/latelyhttp"
)

// forwardedFor is the metadata in which a proxy names its client.
const forwardedFor = "x-forwarded-for"

// IdentityStats counts the calls for which no client's address was found since i was made.
// Calls under rules that do not use the client are not counted.
func (i *Interceptor) IdentityStats() latelyhttp.IdentityStats { return i.identity.Stats() }

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
