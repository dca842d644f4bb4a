package latelygrpc

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/ratelimit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// An Interceptor judges the calls of a gRPC server. Its methods Unary and Stream
// are a [grpc.UnaryServerInterceptor] and a [grpc.StreamServerInterceptor].
//
// Apart from the limiter's decision, a judged call costs less than 1 µs, most of it for
// the metadata about limits, which Config.HideLimits saves. An Interceptor is safe for
// concurrent use. Make one with New; the zero value is not usable.
type Interceptor struct {
	config   Config
	identity *latelyhttp.Identity
	rules    middleware.Rules[*Call]
	calls    sync.Pool // *Call
}

// A plan is what an Interceptor derives from one Set.
type plan = middleware.Plan[*Call]

// New returns an Interceptor over l. The error names a wrong field of c, or an event
// field that l's rules use and no call has.
func New(l *ratelimit.Limiter, c Config) (*Interceptor, error) {
	if err := middleware.CheckFields(c.Fields); err != nil {
		return nil, err
	}
	identity, err := latelyhttp.NewIdentity(latelyhttp.IdentityConfig{
		TrustedProxies: c.TrustedProxies, TrustUnix: c.TrustUnix, Hops: c.Hops, ProxiesAreClients: c.ProxiesAreClients,
	})
	if err != nil {
		return nil, fmt.Errorf("Config: %w", err)
	}
	i := &Interceptor{config: c, identity: identity, calls: sync.Pool{New: func() any { return new(Call) }}}
	if err := i.rules.Init(l, c.HideNames, c.HashKey, findField(c.Fields)); err != nil {
		return nil, err
	}
	if err := i.Check(l.Set()); err != nil {
		return nil, err
	}
	return i, nil
}

// Unary judges a unary call before its handler runs. It is a
// grpc.UnaryServerInterceptor.
func (i *Interceptor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	lease, err := i.judge(ctx, info.FullMethod, request, nil)
	if err != nil {
		return nil, err
	}
	defer lease.Done()
	return handler(ctx, request)
}

// Stream judges a stream before its handler runs; the handler limits its messages,
// see the package documentation. It is a grpc.StreamServerInterceptor.
func (i *Interceptor) Stream(server any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	lease, err := i.judge(ss.Context(), info.FullMethod, nil, info)
	if err != nil {
		return err
	}
	defer lease.Done()
	return handler(server, ss)
}

// judge judges a call, of which one of request and stream is nil.
func (i *Interceptor) judge(ctx context.Context, method string, request any, stream *grpc.StreamServerInfo) (middleware.Lease, error) {
	c := i.calls.Get().(*Call)
	c.FullMethod, c.Request, c.Stream, c.ctx, c.identity = method, request, stream, ctx, i.identity
	lease, err := i.judgeCall(c)
	c.reset()
	i.calls.Put(c)
	return lease, err
}

// judgeCall judges c, sends metadata to its client, and waits for its turn. It returns an
// error if the call is refused.
func (i *Interceptor) judgeCall(c *Call) (lease middleware.Lease, err error) {
	if i.config.Skip != nil && i.config.Skip(c) {
		return lease, nil
	}
	cost := uint64(1)
	if i.config.Cost != nil {
		cost = i.config.Cost(c)
	}
	allowed := false
	defer func() {
		if !allowed { // or a function of Config has panicked
			lease.Cancel()
		}
	}()
	p := i.rules.Plan()
	v := Verdict{Set: p.Set}
	p.Fill(&c.judged, c)
	v.Decision, v.Outcomes, lease = i.rules.Reserve(p, &c.judged, cost)
	if i.config.Observe != nil {
		i.config.Observe(c, v)
	}
	i.sendLimits(c, p, &v)
	if err := i.outcome(c, p, &v); err != nil {
		return lease, err
	}
	allowed = true
	return lease, nil
}

// outcome returns the error of a refusal. If a leaky bucket queues the event, it waits
// for its turn, unless that comes after the call's deadline.
func (i *Interceptor) outcome(c *Call, p *plan, v *Verdict) error {
	switch d := &v.Decision; {
	case !d.Allowed:
		return i.refusal(c, p, v)
	case d.Delay <= 0 || wait.Within(c.ctx, d.Delay) == nil:
		return nil
	case c.ctx.Err() != nil:
		return status.FromContextError(c.ctx.Err()).Err()
	default:
		return status.Errorf(codes.DeadlineExceeded, "the turn of the call would come in %v, after its deadline", roundUp(d.Delay))
	}
}

// The metadata of draft-ietf-httpapi-ratelimit-headers-11.
const (
	policyField = "ratelimit-policy"
	limitField  = "ratelimit"
)

// sendLimits sends metadata about v: in the header if the call is allowed, in the trailer
// if it is refused. The client may be gone, so errors are ignored.
func (i *Interceptor) sendLimits(c *Call, p *plan, v *Verdict) {
	d := &v.Decision
	if d.Allowed && i.config.HideLimits {
		return
	}
	md := make(metadata.MD, 3)
	if !i.config.HideLimits {
		var policies, limits []string
		policies, limits, c.judged.Text = p.Policies.Fields(c.judged.Text, v.Outcomes, d)
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
