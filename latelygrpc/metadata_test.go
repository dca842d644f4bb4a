package latelygrpc

import (
	"maps"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// The grammar of RFC 9651, the part that these fields need: a List of Strings
// with parameters that are Integers or Strings.
var (
	sfParameter = `;([a-z*][a-z0-9_.*-]*)=(-?[0-9]{1,15}|"(?:[ !#-\[\]-~]|\\["\\])*")`
	sfItem      = `("(?:[ !#-\[\]-~]|\\["\\])*")((?:` + sfParameter + `)*)`
	itemForm    = regexp.MustCompile(sfItem)
	paramForm   = regexp.MustCompile(sfParameter)
	listForm    = regexp.MustCompile(`^` + sfItem + `(?:[ \t]*,[ \t]*` + sfItem + `)*$`)
)

type item struct {
	name   string
	params map[string]any
}

// parseList parses a field of that grammar.
func parseList(t *testing.T, field []string) (items []item) {
	t.Helper()
	if len(field) != 1 || !listForm.MatchString(field[0]) {
		t.Fatalf("%q is no list of RFC 9651", field)
	}
	for _, found := range itemForm.FindAllStringSubmatch(field[0], -1) {
		it := item{found[1], map[string]any{}}
		for _, p := range paramForm.FindAllStringSubmatch(found[2], -1) {
			it.params[p[1]] = p[2]
			if n, err := strconv.Atoi(p[2]); err == nil {
				it.params[p[1]] = n
			}
		}
		items = append(items, it)
	}
	return items
}

func wantItems(t *testing.T, what string, got, want []item) {
	t.Helper()
	same := len(got) == len(want)
	for n := 0; same && n < len(got); n++ {
		same = got[n].name == want[n].name && maps.Equal(got[n].params, want[n].params)
	}
	if !same {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestLimitMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{},
			ratelimit.Rule{Name: `a "b"\ ü`, Key: newKey(t, "client"), Limits: []ratelimit.Limit{{N: 2, Span: 10 * time.Second}, {N: 3, Span: 1500 * time.Millisecond}}},
			ratelimit.Rule{Name: "method", Key: newKey(t, "method"), Limits: []ratelimit.Limit{{N: 9, Span: time.Minute}}},
			ratelimit.Rule{Name: "shadow", Key: newKey(t, "method"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}, Shadow: true},
			ratelimit.Rule{Name: "flood", Key: newKey(t, "client"), Ban: &ratelimit.Ban{After: 99, Span: time.Minute, For: time.Hour}}))
		name := `"a \"b\"\\ %C3%BC/`
		policies := []item{
			{name + `10s"`, map[string]any{"q": 2, "w": 10}},
			{name + `1500ms"`, map[string]any{"q": 3, "w": 2}},
			{`"method"`, map[string]any{"q": 9, "w": 60}},
		}
		for n := range 2 {
			r := say(t, conn)
			wantItems(t, policyField, parseList(t, r.header[policyField]), policies)
			wantItems(t, limitField, parseList(t, r.header[limitField]), []item{
				{name + `10s"`, map[string]any{"r": 1 - n, "t": 10}},
				{`"method"`, map[string]any{"r": 8 - n, "t": 60}},
			})
			if r.trailer.Get(policyField) != nil || r.trailer.Get(pushbackField) != nil {
				t.Errorf("call %d: the trailer is %v", n+1, r.trailer)
			}
			time.Sleep(500 * time.Millisecond)
		}
		r := say(t, conn)
		if r.code() != codes.ResourceExhausted || len(r.header.Get(policyField)) > 0 {
			t.Fatalf("the third call gets %v, with the header %v", r.status, r.header)
		}
		wantItems(t, policyField, parseList(t, r.trailer[policyField]), policies)
		wantItems(t, limitField, parseList(t, r.trailer[limitField]), []item{
			{name + `10s"`, map[string]any{"r": 0, "t": 9}},
			{`"method"`, map[string]any{"r": 7, "t": 9}},
		})
		if got := r.trailer.Get(pushbackField); len(got) != 1 || got[0] != "9000" {
			t.Errorf("%s is %v, want 9000", pushbackField, got)
		}
	})
}

// Other algorithms have other parameters.
func TestPolicyOfOtherAlgorithms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at midnight
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, inFlight(t, 2),
			ratelimit.Rule{
				Name: "calendar", Key: newKey(t, "client"), Algorithm: ratelimit.Calendar,
				Limits: []ratelimit.Limit{{N: 5, Per: ratelimit.PerDay}, {N: 100, Per: ratelimit.PerMonth}},
			},
			ratelimit.Rule{Name: "burst", Key: newKey(t, "client"), Algorithm: ratelimit.GCRA, Limits: []ratelimit.Limit{{N: 10, Span: time.Second, Burst: 100}}}))
		r := say(t, conn)
		wantItems(t, policyField, parseList(t, r.header[policyField]), []item{
			{`"at-once"`, map[string]any{"q": 2, "qu": `"concurrent-requests"`}},
			{`"calendar/day"`, map[string]any{"q": 5, "w": 86400}},
			{`"calendar/month"`, map[string]any{"q": 100, "w": 31 * 86400}},
			{`"burst"`, map[string]any{"q": 100, "w": 10}},
		})
	})
}

// The quota of an adaptive limit is the limit at the decision.
func TestPolicyOfAnAdaptiveLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := perClient(t, 10)
		rule.Adapt = &ratelimit.Adapt{Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 1000, Limit: 20}}, Above: 5}
		conn := dialPipe(t, new(echo), newInterceptor(t, Config{}, rule))
		var quotas []any
		for range 20 {
			r := say(t, conn)
			policy, limit := parseList(t, r.header[policyField])[0], parseList(t, r.header[limitField])[0]
			quotas = append(quotas, policy.params["q"])
			if n := len(quotas); limit.params["r"] != policy.params["q"].(int)-n {
				t.Errorf("call %d: %v with %v", n, policy, limit)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if quotas[0] != 10 || quotas[19] != 20 {
			t.Errorf("the quotas are %v, want 10 at first and 20 at the end", quotas)
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

// A call that no rule is about is told of none.
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
