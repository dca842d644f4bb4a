package latelygrpc

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func TestUnaryRefusesTheOneTooMany(t *testing.T) {
	i := newInterceptor(t, Config{}, perClient(t, 3))
	conn := dialFrom(t, nil, i)
	wantCodes(t, conn, codes.OK, codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted)

	r := say(t, conn)
	if r.reason() != ReasonLimited {
		t.Errorf("the reason is %q, want %q", r.reason(), ReasonLimited)
	}
	quota := detail[errdetails.QuotaFailure](r)
	if v := quota.GetViolations(); len(v) != 1 || v[0].GetQuotaId() != "per-client" || v[0].GetQuotaValue() != 3 || v[0].GetSubject() != "client" {
		t.Errorf("the violations are %v", v)
	}
	if wait, ok := r.wait(); !ok || wait <= 59*time.Minute || wait > time.Hour {
		t.Errorf("retry after %v (there: %v), want just under an hour", wait, ok)
	}
	if strings.Contains(r.status.String(), "127.0.0.1") {
		t.Errorf("the refusal contains the client's key: %v", r.status)
	}
}

// A lone client that waits for RetryAfter is always allowed; one that waits a nanosecond less is not. The time is the
// bubble's.
func TestRetryInfoIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInterceptor(t, Config{},
			ratelimit.Rule{Name: "short", Key: newKey(t, "client"), Limits: []ratelimit.Limit{{N: 2, Span: time.Second}}},
			ratelimit.Rule{
				Name: "long", Key: newKey(t, "method"), Limits: []ratelimit.Limit{{N: 90, Span: time.Minute}},
				Ban: &ratelimit.Ban{After: 5, Of: ratelimit.Refusals, Span: time.Hour, For: 90 * time.Second},
			})
		conn := dialPipe(t, new(echo), i)
		refusals, early := 0, 0
		for range 400 {
			time.Sleep(time.Duration(refusals%7) * 10 * time.Millisecond)
			r := say(t, conn)
			if r.code() == codes.OK {
				continue
			}
			refusals++
			wait, ok := r.wait()
			if !ok || wait <= 0 {
				t.Fatalf("refusal %d has the wait %v (there: %v)", refusals, wait, ok)
			}
			if refusals%2 == 0 { // too early, once
				time.Sleep(wait - 1)
				if r := say(t, conn); r.code() == codes.OK {
					t.Fatalf("refusal %d: allowed before its RetryAfter of %v", refusals, wait)
				} else if wait, _ = r.wait(); wait <= 0 {
					t.Fatalf("refusal %d: no wait the second time", refusals)
				}
				early++
			}
			time.Sleep(wait)
			if r := say(t, conn); r.code() != codes.OK {
				t.Fatalf("refusal %d: refused after waiting %v: %v", refusals, wait, r.status)
			}
		}
		if refusals < 50 || early < 20 {
			t.Errorf("only %d refusals, %d tried early", refusals, early)
		}
	})
}

func TestBanIsInTheStatus(t *testing.T) {
	rule := perClient(t, 1)
	rule.Ban = &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, rule))
	wantCodes(t, conn, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted)

	r := say(t, conn)
	info := detail[errdetails.ErrorInfo](r)
	if r.code() != codes.ResourceExhausted || info.GetReason() != ReasonBanned || info.GetDomain() != ErrorDomain {
		t.Fatalf("a banned call gets %v with %v", r.status, info)
	}
	until, err := time.Parse(time.RFC3339Nano, info.GetMetadata()["banned_until"])
	if left := time.Until(until); err != nil || left < 59*time.Minute || left > time.Hour {
		t.Errorf("banned until %v (%v), want an hour from now", until, err)
	}
	if wait, ok := r.wait(); !ok || wait < 59*time.Minute {
		t.Errorf("the wait is %v (there: %v)", wait, ok)
	}
}

func TestCostAboveTheLimit(t *testing.T) {
	i := newInterceptor(t, Config{Cost: func(*Call) uint64 { return 4 }}, perClient(t, 3))
	conn := dialPipe(t, new(echo), i)
	r := say(t, conn)
	if wait, ok := r.wait(); r.code() != codes.ResourceExhausted || ok {
		t.Errorf("%v with a wait of %v, want RESOURCE_EXHAUSTED without any", r.code(), wait)
	}
	if got := r.trailer.Get(pushbackField); len(got) != 1 || got[0] != "-1" {
		t.Errorf("%s is %v, want -1", pushbackField, got)
	}
}

func TestMissingField(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: []match.Source{{Field: "api_key", Header: "X-API-Key", Refuse: true}}},
		ratelimit.Rule{Name: "keys", Key: newKey(t, "api_key"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}}))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	i := must.Get(New(l, Config{}))(t)
	r := say(t, dialPipe(t, new(echo), i))
	s, info := r.status, detail[errdetails.ErrorInfo](r)
	if s.Code() != codes.Unauthenticated || s.Message() != "the request lacks the header X-API-Key" || len(s.Details()) != 1 ||
		info.GetReason() != ReasonMissing || info.GetMetadata()["missing"] != "api_key" || info.GetMetadata()["rule"] != "keys" {
		t.Errorf("%v with %v", s, s.Details())
	}
	if got := r.trailer.Get(pushbackField); len(got) != 1 || got[0] != "-1" {
		t.Errorf("%s is %v, want -1", pushbackField, got)
	}
}

// broken is a store that cannot decide.
type broken struct {
	store.Store[*ratelimit.Set, ratelimit.BanRecord] // no other method is called

	err error
}

func (broken) DecideKnown(*store.Request[*ratelimit.Set]) bool { return false }

func (broken) Nodes() int { return 0 }

func (b broken) Decide(_ context.Context, batch []*store.Request[*ratelimit.Set]) {
	for _, r := range batch {
		r.Err = b.err
	}
}

func TestStoreCannotDecide(t *testing.T) {
	down := errors.New("connection refused")
	for _, tt := range []struct {
		policy ratelimit.FailPolicy
		err    error
		want   codes.Code
		reason string
	}{
		{ratelimit.FailClosed, down, codes.Unavailable, ReasonStore},
		{ratelimit.FailOpen, down, codes.OK, ""},
		{ratelimit.FailLocal, down, codes.OK, ""},
	} {
		rule := perClient(t, 3)
		rule.OnStoreFailure = tt.policy
		set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, rule))(t)
		l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Store: broken{err: tt.err}}))(t)
		i := must.Get(New(l, Config{}))(t)
		r := say(t, dialPipe(t, new(echo), i))
		if r.code() != tt.want || r.reason() != tt.reason {
			t.Errorf("policy %v: %v with reason %q, want %v, %q", tt.policy, r.code(), r.reason(), tt.want, tt.reason)
		}
		if wait, ok := r.wait(); ok {
			t.Errorf("policy %v: a wait of %v, want none", tt.policy, wait)
		}
		if strings.Contains(r.status.Message(), down.Error()) {
			t.Errorf("policy %v: the client receives %q", tt.policy, r.status.Message())
		}
	}
}

func TestKeyTooLong(t *testing.T) {
	rule := perClient(t, 3)
	rule.Key = newKey(t, "api_key")
	conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, rule))
	r := say(t, conn, "x-api-key", strings.Repeat("k", 4<<20))
	if r.code() != codes.InvalidArgument || r.reason() != ReasonKey {
		t.Errorf("%v with reason %q", r.status, r.reason())
	}
}

func TestSkipObserveFieldsAndShadow(t *testing.T) {
	type user struct{}
	var seen []string
	c := Config{
		Skip:   func(c *Call) bool { return c.Context().Value(user{}) != nil },
		Fields: map[string]func(*Call) string{"user": func(*Call) string { return "ann" }},
		Observe: func(c *Call, v Verdict) {
			line := c.FullMethod + " by " + c.Client()
			for _, o := range v.Outcomes {
				if v.Decision.Allowed && o.Refused {
					line += ", refused by shadow rule " + v.Set.Rules()[o.Rule].Name
				}
			}
			seen = append(seen, line)
		},
	}
	rule := perClient(t, 1)
	rule.Key, rule.Shadow = newKey(t, "user"), true
	i := newInterceptor(t, c, rule)
	say := func(ctx context.Context) error {
		_, err := i.Unary(ctx, "hello", &grpc.UnaryServerInfo{FullMethod: sayMethod}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), user{}, 1), t.Context()} {
		if err := say(ctx); err != nil {
			t.Error(err)
		}
	}
	if got, want := strings.Join(seen, "; "), "/test.Echo/Say by unknown; /test.Echo/Say by unknown, refused by shadow rule per-client"; got != want {
		t.Errorf("the observer saw %q, want %q", got, want)
	}
}

func TestOnRefused(t *testing.T) {
	replace := true
	i := newInterceptor(t, Config{OnRefused: func(_ *Call, _ Verdict, err error) error {
		if !replace {
			return nil
		}
		return status.Errorf(codes.Aborted, "instead of %v", status.Code(err))
	}}, perClient(t, 0))
	conn := dialPipe(t, new(echo), i)
	wantCodes(t, conn, codes.Aborted)
	replace = false
	wantCodes(t, conn, codes.ResourceExhausted)
}

// Hidden values must not be anywhere in the reply.
func TestHideNames(t *testing.T) {
	for _, hide := range []bool{false, true} {
		rule := perClient(t, 1)
		rule.Name, rule.Key = "the-secret-name", newKey(t, "secret")
		rule.Ban = &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{HideNames: hide}, rule))
		for n := range 4 {
			r := say(t, conn, "secret", "x")
			var all strings.Builder
			for _, d := range r.status.Details() {
				all.WriteString(d.(interface{ String() string }).String())
			}
			all.WriteString(r.status.Message() + strings.Join(append(r.header.Get(policyField), r.trailer.Get(policyField)...), " "))
			if told := strings.Contains(all.String(), "secret"); told == hide {
				t.Errorf("call %d, hide is %v: the client receives %s", n+1, hide, &all)
			}
			if n > 0 && hide && !strings.Contains(all.String(), `"policy-1"`) {
				t.Errorf("call %d does not receive policy-1: %s", n+1, &all)
			}
		}
	}
}

// gRPC's own retries wait for RetryAfter, and are allowed then.
func TestRetriesWaitForThePushback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		rule := ratelimit.Rule{Name: "slow", Key: newKey(t, "client"), Limits: []ratelimit.Limit{{N: 1, Span: 7 * time.Second}}}
		i := newInterceptor(t, Config{Observe: func(*Call, Verdict) { attempts.Add(1) }}, rule)
		conn := dialPipe(t, new(echo), i, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
		start := time.Now()
		for range 3 {
			if r := say(t, conn); r.code() != codes.OK {
				t.Fatal(r.status)
			}
		}
		if took := time.Since(start); attempts.Load() != 5 || took < 14*time.Second || took > 15*time.Second {
			t.Errorf("3 calls took %d attempts and %v, want 5 and 14s", attempts.Load(), took)
		}

		// A deadline that is nearer than the wait ends it at once.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start = time.Now()
		if r := sayIn(ctx, conn); r.code() != codes.ResourceExhausted {
			t.Errorf("with a deadline that is too near: %v", r.status)
		}
		if took := time.Since(start); attempts.Load() != 6 || took > time.Second {
			t.Errorf("it took %d attempts and %v, want one more and no time", attempts.Load(), took)
		}
	})
}

func TestNewNamesTheMistake(t *testing.T) {
	limiter := must.Get(ratelimit.New(perClient(t, 1)))(t)
	if _, err := New(nil, Config{}); err == nil || !strings.Contains(err.Error(), "ratelimit.New") {
		t.Errorf("a nil limiter: %v", err)
	}
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Hops: -1}, "Hops: -1"},
		{Config{Fields: map[string]func(*Call) string{"user": nil}}, `Fields: "user"`},
		{Config{TrustedProxies: []netip.Prefix{{}}}, "TrustedProxies: invalid prefix"},
		{Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::/0")}}, "TrustedProxies: ::/0: trusts"},
		{Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/90")}}, "spans IPv4 and IPv6"},
	} {
		if _, err := New(limiter, tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}

	// A rule that can never match is a mistake, too.
	rule := perClient(t, 1)
	rule.Key = newKey(t, "client", "status")
	limiter = must.Get(ratelimit.New(rule))(t)
	if _, err := New(limiter, Config{}); err == nil || !strings.Contains(err.Error(), `unknown field "status"`) {
		t.Errorf("a rule on status: %v", err)
	}
	if _, err := New(limiter, Config{Fields: map[string]func(*Call) string{"status": func(*Call) string { return "0" }}}); err != nil {
		t.Errorf("a rule on status that Fields has: %v", err)
	}
}

// Rules can change while calls come: lookups and answers change with them.
func TestRulesChange(t *testing.T) {
	limiter := must.Get(ratelimit.New(perClient(t, 1)))(t)
	i := must.Get(New(limiter, Config{}))(t)
	conn := dialPipe(t, new(echo), i)
	wantCodes(t, conn, codes.OK, codes.ResourceExhausted)
	rule := perClient(t, 2)
	rule.Name, rule.Key = "per-tenant", newKey(t, "tenant")
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, rule))(t)
	must.Do(t, i.Check(set))
	must.Do(t, limiter.Update(set))
	for n, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		r := say(t, conn, "x-tenant", "acme")
		if policy := append(r.header.Get(policyField), r.trailer.Get(policyField)...); r.code() != want || len(policy) != 1 || policy[0] != `"per-tenant";q=2;w=3600` {
			t.Errorf("call %d: %v, %s %q", n+1, r.status, policyField, policy)
		}
	}
}
