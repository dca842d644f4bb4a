package latelygrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// talk opens a Talk.
func talk(t testing.TB, ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	cs, err := conn.NewStream(ctx, &echoService.Streams[0], talkMethod)
	if err != nil {
		t.Fatal(err)
	}
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

// The limit is 10: 1 for the call and 3 for each message, but for those that
// cost nothing. The fourth that costs is refused, and ends the reading.
func TestMessageCost(t *testing.T) {
	var received []string
	var ends []error
	service := &echo{talk: func(ss grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			err := ss.RecvMsg(m)
			if err != nil {
				ends = append(ends, err, ss.RecvMsg(m))
				return err
			}
			received = append(received, m.GetValue())
			if err := ss.SendMsg(m); err != nil {
				return err
			}
		}
	}}
	var observed int
	i := newInterceptor(t, Config{
		MessageCost: func(c *Call, m any) uint64 {
			if c.FullMethod != talkMethod || c.Stream == nil {
				t.Errorf("the call is %+v", c)
			}
			if m.(*wrapperspb.StringValue).GetValue() == "free" {
				return 0
			}
			return 3
		},
		Observe: func(*Call, Verdict) { observed++ },
	}, perClient(t, 10))
	conn := dialPipe(t, service, i)
	cs := talk(t, t.Context(), conn)
	for n, s := range []string{"a", "free", "b", "free", "c", "free"} {
		if err := exchange(cs, s); err != nil {
			t.Fatalf("message %d: %v", n+1, err)
		}
	}
	err := exchange(cs, "d")
	r := reply{status: status.Convert(err)}
	if wait, ok := r.wait(); r.code() != codes.ResourceExhausted || !ok || wait <= 0 {
		t.Errorf("the fourth message: %v, with a wait of %v", err, wait)
	}
	if len(received) != 6 || len(ends) != 2 || !errors.Is(ends[1], ends[0]) {
		t.Errorf("the handler got %q, and then %v", received, ends)
	}
	if observed != 5 {
		t.Errorf("%d decisions were observed, want 5", observed)
	}
	// A refused message charged nothing: nothing is left, and no more is owed.
	if r := say(t, conn); r.code() != codes.ResourceExhausted {
		t.Errorf("10 of 10 are charged, and a call gets %v", r.status)
	}
}

// However many call at once, the limit admits as many as it says.
func TestManyAtOnce(t *testing.T) {
	const limit, callers, each = 50, 8, 20
	conn := dialFrom(t, nil, newInterceptor(t, Config{}, perClient(t, limit)))
	var admitted atomic.Int64
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
					admitted.Add(1)
				case codes.ResourceExhausted:
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != limit {
		t.Errorf("%d were admitted, want %d", admitted.Load(), limit)
	}
}
