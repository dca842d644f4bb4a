package latelygrpc

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

const (
	sayMethod  = "/test.Echo/Say"
	talkMethod = "/test.Echo/Talk"
)

// echo is the service of the tests: Say returns its request, Talk returns each message. Hooks let a test look inside.
type echo struct {
	say  func(context.Context, string) (string, error)
	talk func(grpc.ServerStream) error
}

var echoService = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.StringValue)
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, in any) (any, error) {
			out, err := srv.(*echo).say(ctx, in.(*wrapperspb.StringValue).GetValue())
			return wrapperspb.String(out), err
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: sayMethod}, handle)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Talk", ServerStreams: true, ClientStreams: true, Handler: func(srv any, ss grpc.ServerStream) error {
		return srv.(*echo).talk(ss)
	}}},
}

func repeat(_ context.Context, s string) (string, error) { return s, nil }

func repeatAll(ss grpc.ServerStream) error {
	for {
		m := new(wrapperspb.StringValue)
		if err := ss.RecvMsg(m); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
}

// serve runs service behind i on lis until the test ends.
func serve(t testing.TB, lis net.Listener, service *echo, i *Interceptor) {
	t.Helper()
	if service.say == nil {
		service.say = repeat
	}
	if service.talk == nil {
		service.talk = repeatAll
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(i.Unary), grpc.ChainStreamInterceptor(i.Stream), grpc.WaitForHandlers(true))
	server.RegisterService(&echoService, service)
	done := make(chan error, 1)
	go func() { done <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// dialPipe returns a connection to a server of i over a pipe in memory.
func dialPipe(t testing.TB, service *echo, i *Interceptor, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	serve(t, lis, service, i)
	return dial(t, "passthrough:///pipe", append(options,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
}

// dialFrom returns a connection to a server of i on the loopback interface that
// sees it as coming from remote, or from where it comes if remote is nil.
func dialFrom(t testing.TB, remote net.Addr, i *Interceptor) *grpc.ClientConn {
	t.Helper()
	lis := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	serve(t, disguise{lis, remote}, new(echo), i)
	return dial(t, lis.Addr().String())
}

func dial(t testing.TB, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := must.Get(grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// disguise is a listener whose connections have other remote addresses.
type disguise struct {
	net.Listener
	remote net.Addr
}

func (l disguise) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || l.remote == nil {
		return conn, err
	}
	return disguisedConn{conn, l.remote}, nil
}

type disguisedConn struct {
	net.Conn
	remote net.Addr
}

func (c disguisedConn) RemoteAddr() net.Addr { return c.remote }

// say calls Say with metadata given as pairs.
func say(t testing.TB, conn *grpc.ClientConn, pairs ...string) reply {
	t.Helper()
	return sayIn(metadata.AppendToOutgoingContext(t.Context(), pairs...), conn)
}

func sayIn(ctx context.Context, conn *grpc.ClientConn) reply {
	r := reply{}
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, sayMethod, wrapperspb.String("hello"), out, grpc.Header(&r.header), grpc.Trailer(&r.trailer))
	r.status = status.Convert(err)
	return r
}

// A reply is what a client gets.
type reply struct {
	status          *status.Status
	header, trailer metadata.MD
}

func (r reply) code() codes.Code { return r.status.Code() }

// detail returns the detail of type T of the reply's status, nil if there is
// none.
func detail[T any](r reply) *T {
	for _, d := range r.status.Details() {
		if found, ok := d.(*T); ok {
			return found
		}
	}
	return nil
}

func (r reply) reason() string { return detail[errdetails.ErrorInfo](r).GetReason() }

// wait returns the reply's RetryInfo, and whether it has one.
func (r reply) wait() (time.Duration, bool) {
	info := detail[errdetails.RetryInfo](r)
	return info.GetRetryDelay().AsDuration(), info != nil
}

func newKey(t testing.TB, names ...string) match.Key {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{}, names...))(t)
	return key
}

// newInterceptor returns an Interceptor of rules.
// sources are the declared fields of the tests.
var sources = []match.Source{
	{Field: "tenant", Header: "X-Tenant"},
	{Field: "api_key", Header: "X-Api-Key"},
	{Field: "session", Cookie: "sid"},
	{Field: "token", Bearer: true},
	{Field: "page", Query: "page"},
	{Field: "absent", Header: "x-absent"},
	{Field: "secret", Header: "secret"},
}

func newInterceptor(t testing.TB, c Config, rules ...ratelimit.Rule) *Interceptor {
	t.Helper()
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, rules...))(t)
	limiter := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	i := must.Get(New(limiter, c))(t)
	return i
}

// perClient is the rule of most tests: n an hour for each client.
func perClient(t testing.TB, n uint64) ratelimit.Rule {
	return ratelimit.Rule{Name: "per-client", Key: newKey(t, "client"), Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}}
}

// wantCodes calls Say once for each code and compares.
func wantCodes(t *testing.T, conn *grpc.ClientConn, want ...codes.Code) {
	t.Helper()
	for n, code := range want {
		if r := say(t, conn); r.code() != code {
			t.Fatalf("call %d: %v (%s), want %v", n+1, r.code(), r.status.Message(), code)
		}
	}
}
