package latelygrpc

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// talk opens a Talk.
func talk(t testing.TB, ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	cs := must.Get(conn.NewStream(ctx, &echoService.Streams[0], talkMethod))(t)
	return cs
}

// exchange sends one message and receives one.
func exchange(cs grpc.ClientStream, s string) error {
	if err := cs.SendMsg(wrapperspb.String(s)); err != nil && err != io.EOF {
		return err
	}
	return cs.RecvMsg(new(wrapperspb.StringValue))
}

func TestStreamIsJudgedAtItsStart(t *testing.T) {
	conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, perClient(t, 2)))
	for n := range 3 {
		cs := talk(t, t.Context(), conn)
		var err error
		for range 5 { // messages cost nothing
			if err = exchange(cs, "hello"); err != nil {
				break
			}
		}
		if want := []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted}[n]; status.Code(err) != want {
			t.Errorf("stream %d: %v, want %v", n+1, err, want)
		}
		r := reply{status: status.Convert(err)}
		if wait, ok := r.wait(); ok != (n == 2) {
			t.Errorf("stream %d: a wait of %v (there: %v)", n+1, wait, ok)
		}
		if err := cs.CloseSend(); err != nil {
			t.Error(err)
		}
		_ = cs.RecvMsg(new(wrapperspb.StringValue))
	}
}

// A handler limits the messages of a stream itself, as the package documentation shows.
func TestHandlerLimitsMessages(t *testing.T) {
	messages := ratelimit.PerKey(3, time.Hour)
	service := &echo{talk: func(ss grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			if err := ss.RecvMsg(m); err != nil {
				return err
			}
			if d := messages.Take("user"); !d.Allowed {
				return status.Error(codes.ResourceExhausted, "too many messages")
			}
			if err := ss.SendMsg(m); err != nil {
				return err
			}
		}
	}}
	conn := dialPipe(t, service, newInterceptor(t, Config{}, perClient(t, 1)))
	cs := talk(t, t.Context(), conn)
	for n := range 4 {
		err := exchange(cs, "hello")
		if want := []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted}[n]; status.Code(err) != want {
			t.Errorf("message %d: %v, want %v", n+1, err, want)
		}
	}
}

// As many concurrent calls are allowed as the limit.
func TestManyAtOnce(t *testing.T) {
	const limit, callers, each = 50, 8, 20
	conn := dialFrom(t, nil, newInterceptor(t, Config{}, perClient(t, limit)))
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := range each {
				err := error(nil)
				if n%2 == 0 {
					err = sayIn(t.Context(), conn).status.Err()
				} else if cs, e := conn.NewStream(t.Context(), &echoService.Streams[0], talkMethod); e != nil {
					err = e
				} else {
					_ = cs.CloseSend()
					if err = cs.RecvMsg(new(wrapperspb.StringValue)); err == io.EOF {
						err = nil
					}
				}
				switch status.Code(err) {
				case codes.OK:
					allowed.Add(1)
				case codes.ResourceExhausted:
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != limit {
		t.Errorf("%d were allowed, want %d", allowed.Load(), limit)
	}
}
