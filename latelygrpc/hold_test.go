package latelygrpc

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// inFlight is a rule of n calls of a client at one time.
func inFlight(t testing.TB, n uint64) ratelimit.Rule {
	return ratelimit.Rule{
		Name: "at-once", Key: newKey(t, "client"), Algorithm: ratelimit.InFlight,
		Limits: []ratelimit.Limit{{N: n, Span: time.Hour}},
	}
}

// A unary call is in flight until its handler has returned or panicked; what
// else the call was charged with stays.
func TestUnaryIsInFlightWhileItsHandlerRuns(t *testing.T) {
	total := perClient(t, 6)
	total.Name = "total"
	i := newInterceptor(t, Config{}, inFlight(t, 2), total)
	var inside func()
	call := func() (err error) {
		defer func() { _ = recover() }()
		_, err = i.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: sayMethod}, func(context.Context, any) (any, error) {
			inside()
			return nil, nil
		})
		return err
	}
	inside = func() {
		inside = func() {
			inside = func() { t.Error("three are in flight") }
			if err := call(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("the third at one time gets %v", err)
			}
			inside = func() {}
		}
		if err := call(); err != nil {
			t.Errorf("the second at one time gets %v", err)
		}
	}
	if err := call(); err != nil {
		t.Error(err)
	}
	inside = func() { panic("the handler fails") }
	for range 3 {
		_ = call()
	}
	inside = func() {}
	if err := call(); err != nil { // the sixth of the total
		t.Errorf("after three panics: %v", err)
	}
	if err := call(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the seventh of the total: %v", err)
	}
}

// A call whose observer panics is not in flight for ever.
func TestPanickingObserver(t *testing.T) {
	fails := true
	i := newInterceptor(t, Config{Observe: func(*Call, Verdict) {
		if fails {
			panic("the observer fails")
		}
	}}, inFlight(t, 1))
	call := func() error {
		defer func() { _ = recover() }()
		_, err := i.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: sayMethod}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	for range 3 {
		_ = call()
	}
	fails = false
	if err := call(); err != nil {
		t.Errorf("after three panics: %v", err)
	}
}

// A stream is in flight until its handler has returned.
func TestStreamIsInFlightWhileItsHandlerRuns(t *testing.T) {
	i := newInterceptor(t, Config{}, inFlight(t, 1), perClient(t, 100))
	conn := dialPipe(t, new(echo), i)
	for range 3 {
		first := talk(t, t.Context(), conn)
		for range 3 {
			must.Do(t, exchange(first, "hello"))
		}
		second := talk(t, t.Context(), conn)
		if err := exchange(second, "hello"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a second stream at one time: %v", err)
		}
		r := say(t, conn)
		if r.code() != codes.ResourceExhausted || r.reason() != ReasonLimited {
			t.Errorf("a call beside the stream: %v", r.status)
		}
		if v := detail[errdetails.QuotaFailure](r).GetViolations(); len(v) != 1 || v[0].GetQuotaId() != "at-once" || v[0].GetQuotaValue() != 1 {
			t.Errorf("a call beside the stream violates %v", v)
		}
		if policy := r.trailer.Get(policyField); len(policy) != 1 || policy[0] != `"at-once";q=1;qu="concurrent-requests", "per-client";q=100;w=3600` {
			t.Errorf("a call beside the stream receives %q", policy)
		}
		if err := first.CloseSend(); err != nil {
			t.Error(err)
		}
		if err := first.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
			t.Errorf("the end of the stream: %v", err)
		}
		if r := say(t, conn); r.code() != codes.OK {
			t.Errorf("a call after the stream: %v", r.status)
		}
	}
}

// leaky is a queue of 3 places, served once a second.
func leaky(t testing.TB) ratelimit.Rule {
	return ratelimit.Rule{
		Name: "queue", Key: newKey(t, "client"), Algorithm: ratelimit.LeakyBucket,
		Limits: []ratelimit.Limit{{N: 1, Span: time.Second, Burst: 3}},
	}
}

// Calls that come at one time are served one a second, as many as there are places; the others are refused at once.
func TestLeakyBucketWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, leaky(t)))
		say(t, conn) // connects
		time.Sleep(time.Minute)
		start := time.Now()
		type end struct {
			code codes.Code
			took time.Duration
		}
		ends := make(chan end, 5)
		for range 5 {
			go func() {
				r := say(t, conn)
				ends <- end{r.code(), time.Since(start).Round(time.Millisecond)}
			}()
		}
		got := map[end]int{}
		for range 5 {
			got[<-ends]++
		}
		want := map[end]int{{codes.OK, 0}: 1, {codes.OK, time.Second}: 1, {codes.OK, 2 * time.Second}: 1, {codes.ResourceExhausted, 0}: 2}
		for e, n := range want {
			if got[e] != n {
				t.Errorf("%d calls ended as %v, want %d; all: %v", got[e], e, n, got)
			}
		}
	})
}

// A call that gives up gives its place back, and one whose turn comes after its
// deadline does not wait at all.
func TestLeakyBucketGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, leaky(t)))
		say(t, conn)
		time.Sleep(time.Minute)
		say(t, conn) // the first in the queue is served at once
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if r := sayIn(short, conn); r.code() != codes.DeadlineExceeded || time.Since(start) > 10*time.Millisecond {
			t.Errorf("a turn beyond the deadline: %v after %v", r.status, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		if r := sayIn(ctx, conn); r.code() != codes.Canceled {
			t.Errorf("a call that gives up: %v", r.status)
		}
		synctest.Wait()
		// Both places are free again: with one of them taken, the next turn would come after 2 s. Reservations that have
		// run out meanwhile are not given back.
		if r := say(t, conn); r.code() != codes.OK || time.Since(start) > 1310*time.Millisecond {
			t.Errorf("the next call: %v after %v", r.status, time.Since(start))
		}
	})
}
