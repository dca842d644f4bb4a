package latelygrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/lately-go/lately/internal/middleware"
	"github.com/lately-go/lately/latelyhttp"
)

// A Call is one call of the server, for the functions of [Config]. It is valid until
// the function that got it returns.
type Call struct {
	// FullMethod is /package.Service/Method.
	FullMethod string

	// Request is the message of a unary call. It is nil for a stream.
	Request any

	// Stream says which sides stream. It is nil for a unary call.
	Stream *grpc.StreamServerInfo

	ctx      context.Context
	kind     string
	identity *latelyhttp.Identity
	client   []byte // empty when not yet known
	host     []byte
	judged   middleware.Request
}

// The values of the field "kind".
const (
	kindCall    = "call"
	kindMessage = "message"
)

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
