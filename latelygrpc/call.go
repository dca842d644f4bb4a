package latelygrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
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

	ctx         context.Context
	kind        string
	identity    *clientaddr.Finder
	client      []byte // empty when not yet known
	host        []byte
	text        []byte // of metadata
	event       match.Event
	reservation *ratelimit.Reservation // its memory is reused
	outcomes    []ratelimit.Outcome
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
func (c *Call) Client() string { return string(c.whoCalls()) }

// reset releases the call and keeps the memory.
func (c *Call) reset() {
	c.event.Reset()
	*c = Call{client: c.client[:0], host: c.host[:0], text: c.text, event: c.event, outcomes: c.outcomes[:0], reservation: c.reservation}
}
