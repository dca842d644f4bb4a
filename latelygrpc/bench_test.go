package latelygrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// The allocations for the judgement of a call: the value of the metadata, and the answer.
func TestAllocations(t *testing.T) {
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: tcp("2001:db8::1")})
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-api-key", "k1"))
	ctx = grpc.NewContextWithServerTransportStream(ctx, discard{})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: sayMethod}
	for _, tt := range []struct {
		hide   bool
		fields []string
		most   float64
	}{
		{true, []string{"client", "method"}, 0},
		{true, []string{"api_key"}, 1},
		{false, []string{"client", "method"}, 4},
	} {
		rule := perClient(t, 1<<30)
		rule.Key = newKey(t, tt.fields...)
		i := newInterceptor(t, Config{HideLimits: tt.hide}, rule)
		got := testing.AllocsPerRun(1000, func() {
			must.Get(i.Unary(ctx, nil, info, handler))(t)
		})
		if got > tt.most {
			t.Errorf("a call by %v, limits hidden: %v, allocates %v times, want %v", tt.fields, tt.hide, got, tt.most)
		}
	}
}

func BenchmarkUnary(b *testing.B) {
	request := metadata.NewIncomingContext(b.Context(), metadata.Pairs(":authority", "shop.example", "x-api-key", "k1"))
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: sayMethod}
	for _, hide := range []bool{true, false} {
		name := "limits"
		if hide {
			name = "hidden"
		}
		b.Run(name, func(b *testing.B) {
			i := newInterceptor(b, Config{HideLimits: hide},
				ratelimit.Rule{Name: "per-key", Key: newKey(b, "api_key"), Limits: []ratelimit.Limit{{N: 1 << 30, Span: time.Hour}}})
			ctx := grpc.NewContextWithServerTransportStream(request, discard{})
			b.ReportAllocs()
			for b.Loop() {
				must.Get(i.Unary(ctx, nil, info, handler))(b)
			}
		})
	}
}

// discard is a transport that forgets metadata.
type discard struct{}

func (discard) Method() string                  { return sayMethod }
func (discard) SetHeader(metadata.MD) error     { return nil }
func (discard) SendHeader(metadata.MD) error    { return nil }
func (discard) SetTrailer(md metadata.MD) error { return nil }
