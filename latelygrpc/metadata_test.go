package latelygrpc

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// wantFields compares both fields of a header or trailer.
func wantFields(t *testing.T, got metadata.MD, policies, limits string) {
	t.Helper()
	if p, l := strings.Join(got[policyField], "|"), strings.Join(got[limitField], "|"); p != policies || l != limits {
		t.Errorf("the fields are\n%s and\n%s, want\n%s and\n%s", p, l, policies, limits)
	}
}

func TestLimitMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{},
			ratelimit.Rule{Name: `a "b"\ ü`, Key: newKey(t, "client"), Limits: []ratelimit.Limit{{N: 2, Span: 10 * time.Second}, {N: 3, Span: 1500 * time.Millisecond}}},
			ratelimit.Rule{Name: "method", Key: newKey(t, "method"), Limits: []ratelimit.Limit{{N: 9, Span: time.Minute}}},
			ratelimit.Rule{Name: "shadow", Key: newKey(t, "method"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}, Shadow: true},
			ratelimit.Rule{Name: "flood", Key: newKey(t, "client"), Ban: &ratelimit.Ban{After: 99, Span: time.Minute, For: time.Hour}}))
		const name = `"a \"b\"\\ %C3%BC/`
		const policies = name + `10s";q=2;w=10, ` + name + `1500ms";q=3;w=2, "method";q=9;w=60`
		for n := range 2 {
			r := say(t, conn)
			wantFields(t, r.header, policies, name+fmt.Sprintf(`10s";r=%d;t=10, "method";r=%d;t=60`, 1-n, 8-n))
			if r.trailer.Get(policyField) != nil || r.trailer.Get(pushbackField) != nil {
				t.Errorf("call %d: the trailer is %v", n+1, r.trailer)
			}
			time.Sleep(500 * time.Millisecond)
		}
		r := say(t, conn)
		if r.code() != codes.ResourceExhausted || len(r.header.Get(policyField)) > 0 {
			t.Fatalf("the third call gets %v, with the header %v", r.status, r.header)
		}
		wantFields(t, r.trailer, policies, name+`10s";r=0;t=9, "method";r=7;t=9`)
		if got := r.trailer.Get(pushbackField); len(got) != 1 || got[0] != "9000" {
			t.Errorf("%s is %v, want 9000", pushbackField, got)
		}
	})
}

func TestHideLimits(t *testing.T) {
	conn := dialPipe(t, new(echo), newInterceptor(t, Config{HideLimits: true}, perClient(t, 1)))
	for n := range 2 {
		r := say(t, conn)
		for name := range r.header {
			if strings.HasPrefix(name, limitField) {
				t.Errorf("call %d has %s", n+1, name)
			}
		}
		if r.trailer.Get(limitField) != nil || (n == 1) != (r.trailer.Get(pushbackField) != nil) {
			t.Errorf("call %d has the trailer %v", n+1, r.trailer)
		}
	}
}

// A call that no rule matches receives none.
func TestNoMatchingRule(t *testing.T) {
	rule := perClient(t, 1)
	rule.When.Path = []string{"/other.Service/*"}
	conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, rule))
	for range 3 {
		if r := say(t, conn); r.code() != codes.OK || r.header.Get(policyField) != nil {
			t.Errorf("%v with %v", r.status, r.header)
		}
	}
}

func TestFieldsOfACall(t *testing.T) {
	var got []string
	for _, name := range []string{"method", "path", "object", "pattern", "host", "api_key", "tenant", "absent", "session", "token"} {
		rule := ratelimit.Rule{Name: "r", Key: newKey(t, name), Limits: []ratelimit.Limit{{N: 1, Span: time.Hour}}}
		i := newInterceptor(t, Config{Observe: func(c *Call, _ Verdict) { got = append(got, string(c.judged.Event.GetNamed(name))) }}, rule)
		lis := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		serve(t, lis, new(echo), i)
		conn := dial(t, lis.Addr().String(), grpc.WithAuthority("Shop.Example.:443"))
		say(t, conn, "X-Api-Key", "k1", "X-Tenant", "acme", "x-tenant", "other", "cookie", "a=b; sid=s1", "authorization", "bearer t1")
	}
	want := []string{sayMethod, sayMethod, sayMethod, sayMethod, "shop.example", "k1", "(ambiguous)", "", "s1", "t1"}
	if g, w := strings.Join(got, "|"), strings.Join(want, "|"); g != w {
		t.Errorf("the fields are %s, want %s", g, w)
	}
}

// A grpc.Server can also serve below net/http, where the peer is text.
func TestBelowNetHTTP(t *testing.T) {
	i := newInterceptor(t, Config{}, perClient(t, 1))
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(i.Unary))
	server.RegisterService(&echoService, &echo{say: repeat, talk: repeatAll})
	lis := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	h := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	h.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error, 1)
	go func() { done <- h.Serve(lis) }()
	t.Cleanup(func() {
		_ = h.Close()
		server.Stop()
		<-done
	})
	for n, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		r := say(t, dial(t, lis.Addr().String())) // from another port each time
		if r.code() != want {
			t.Errorf("call %d: %v, want %v", n+1, r.status, want)
		}
		if _, ok := r.wait(); ok != (n == 1) {
			t.Errorf("call %d has a wait: %v", n+1, ok)
		}
	}
}
