package latelygrpc

import (
	"context"
	"net"

	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/latelyhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// A Call is one call of the server, for the functions of [Config]. It is valid until
// the function that got it returns.
type Call struct {
	// FullMethod is /package.Service/Method.
	FullMethod string

	// Request is the message of a unary call. It is nil for a stream.
	Request any

	// Stream describes which sides stream. It is nil for a unary call.
	Stream *grpc.StreamServerInfo

	ctx      context.Context
	identity *latelyhttp.Identity
	client   []byte // empty when not yet known
	host     []byte
	judged   middleware.Request
}

// Context returns the context of the call, as the interceptor got it.
func (c *Call) Context() context.Context { return c.ctx }

// Client returns the client, see the package documentation. Config.Fields does not
// change it.
func (c *Call) Client() string { return string(c.caller()) }

// reset releases the call and keeps the memory.
func (c *Call) reset() {
	c.judged.Reset()
	*c = Call{client: c.client[:0], host: c.host, judged: c.judged}
}

// forwardedFor is the metadata in which a proxy names its client.
const forwardedFor = "x-forwarded-for"

// IdentityStats returns the number of calls without a client address since i was made.
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
