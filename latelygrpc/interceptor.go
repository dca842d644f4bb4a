package latelygrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/ratelimit"
)

// An Interceptor judges the calls of a gRPC server. Its methods Unary and Stream
// are a [grpc.UnaryServerInterceptor] and a [grpc.StreamServerInterceptor].
//
// Apart from the limiter's decision, a judged call costs less than 1 µs, most of it for
// the metadata about limits, which Config.HideLimits saves. An Interceptor is safe for
// concurrent use. Make one with New; the zero value is not usable.
type Interceptor struct {
	limiter  *ratelimit.Limiter
	config   Config
	identity clientaddr.Finder
	plan     atomic.Pointer[plan]
	calls    sync.Pool // *Call
}

// New returns an Interceptor over l. The error names a wrong field of c, or an event
// field that l's rules use and no call has.
func New(l *ratelimit.Limiter, c Config) (*Interceptor, error) {
	if l == nil {
		return nil, errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
	}
	for name, f := range c.Fields {
		if name == "" || f == nil {
			return nil, fmt.Errorf("Config.Fields: %q: must have a name and a function", name)
		}
	}
	i := &Interceptor{limiter: l, config: c, calls: sync.Pool{New: func() any { return new(Call) }}}
	err := i.identity.Init(clientaddr.Config{
		TrustedProxies: c.TrustedProxies, TrustUnix: c.TrustUnix, Hops: c.Hops, ProxiesAreClients: c.ProxiesAreClients,
	}, "Config")
	if err != nil {
		return nil, err
	}
	if err := i.Check(l.Set()); err != nil {
		return nil, err
	}
	i.plan.Store(i.newPlan(l.Set()))
	return i, nil
}

// Unary judges a unary call before its handler runs. It is a
// grpc.UnaryServerInterceptor.
func (i *Interceptor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := i.calls.Get().(*Call)
	c.FullMethod, c.Request, c.ctx, c.identity = info.FullMethod, request, ctx, &i.identity
	h, err := i.judgeCall(c)
	c.reset()
	i.calls.Put(c)
	if err != nil {
		return nil, err
	}
	defer h.release()
	return handler(ctx, request)
}

// Stream judges a stream before its handler runs and, with Config.MessageCost,
// each message that the client sends in it. It is a grpc.StreamServerInterceptor.
func (i *Interceptor) Stream(server any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	// The Call is not reused: a goroutine of the handler may still be
	// receiving when the handler has returned.
	c := &Call{FullMethod: info.FullMethod, Stream: info, ctx: ss.Context(), identity: &i.identity}
	h, err := i.judgeCall(c)
	if err != nil {
		return err
	}
	defer h.release()
	if i.config.MessageCost != nil && !h.skipped {
		ss = &stream{ServerStream: ss, interceptor: i, call: c}
	}
	return handler(server, ss)
}

// A hold is the reservation of an admitted call.
type hold struct {
	reservation *ratelimit.Reservation // nil if no rule needs it settled
	cost        uint64
	skipped     bool
}

// release ends the call: its place under an in-flight limit is free again. If the store
// fails, the place is free when the span of the limit is over.
func (h *hold) release() {
	if h.reservation != nil {
		_ = h.reservation.Settle(h.cost)
	}
}

// cancel takes back the charge of a call that will not be served.
func (h *hold) cancel() {
	if h.reservation != nil {
		_ = h.reservation.Cancel()
	}
}

// judgeCall judges c, sends metadata to its client, and waits for its turn. The error is
// that of a refusal.
func (i *Interceptor) judgeCall(c *Call) (h hold, err error) {
	if i.config.Skip != nil && i.config.Skip(c) {
		return hold{skipped: true}, nil
	}
	h.cost = 1
	if i.config.Cost != nil {
		h.cost = i.config.Cost(c)
	}
	p := i.current()
	c.kind = kindCall
	p.fill(c)
	admitted := false
	defer func() {
		if !admitted { // or a function of Config has panicked
			h.cancel()
		}
	}()
	v := i.decide(c, p, &h)
	i.tell(c, p, &v)
	if !v.Decision.Allowed {
		return h, i.refusal(c, p, &v)
	}
	if err := turn(c.ctx, v.Decision.Delay); err != nil {
		return h, err
	}
	admitted = true
	return h, nil
}

// judgeMessage judges one message of a stream, and waits for its turn. The error is that
// of a refusal.
func (i *Interceptor) judgeMessage(c *Call, message any) error {
	h := hold{cost: i.config.MessageCost(c, message)}
	if h.cost == 0 {
		return nil
	}
	p := i.current()
	c.kind = kindMessage
	p.fill(c) // again: the rules and the results of functions may have changed
	v := i.decide(c, p, &h)
	if !v.Decision.Allowed {
		return i.refusal(c, p, &v)
	}
	return turn(c.ctx, v.Decision.Delay)
}

// decide takes the decision and calls the observer. Only calls are in flight, never
// messages.
func (i *Interceptor) decide(c *Call, p *plan, h *hold) Verdict {
	v := Verdict{Set: p.set}
	if now := i.limiter.Now(); c.kind == kindCall {
		if c.reservation == nil {
			c.reservation = new(ratelimit.Reservation)
		}
		r := c.reservation
		i.limiter.ReserveN(now, &c.event, h.cost, r)
		v.Decision, c.outcomes = r.Decision, append(c.outcomes[:0], r.Outcomes...)
		if r.Open() {
			h.reservation, c.reservation = r, nil
		}
	} else {
		v.Decision, c.outcomes = i.limiter.Judge(now, &c.event, h.cost, c.outcomes[:0])
	}
	c.outcomes = p.policies.Known(c.outcomes, &v.Decision)
	v.Outcomes = c.outcomes
	if i.config.Observe != nil {
		i.config.Observe(c, v)
	}
	return v
}

// turn waits for the turn of an event that a leaky bucket queues, unless it comes after
// the call's deadline.
func turn(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < delay {
		return status.Errorf(codes.DeadlineExceeded, "the turn of the call would come in %v, after its deadline", roundUp(delay, time.Millisecond))
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// The metadata of draft-ietf-httpapi-ratelimit-headers-11.
const (
	policyField = "ratelimit-policy"
	limitField  = "ratelimit"
)

// tell sends metadata about v: in the header if the call is admitted, in the trailer if
// it is refused. After an error there is nobody to tell.
func (i *Interceptor) tell(c *Call, p *plan, v *Verdict) {
	d := &v.Decision
	if d.Allowed && i.config.HideLimits {
		return
	}
	md := make(metadata.MD, 3)
	if !i.config.HideLimits {
		var policies, limits []string
		policies, limits, c.text = p.policies.Fields(c.text, v.Outcomes, d)
		if policies != nil {
			md[policyField] = policies
		}
		if limits != nil {
			md[limitField] = limits
		}
	}
	if d.Allowed {
		_ = grpc.SetHeader(c.ctx, md)
		return
	}
	if d.RetryAfter != 0 {
		md[pushbackField] = []string{strconv.FormatInt(pushback(c.ctx, d.RetryAfter), 10)}
	}
	_ = grpc.SetTrailer(c.ctx, md)
}
