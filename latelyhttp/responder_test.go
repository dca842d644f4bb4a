package latelyhttp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// tellerSet has one rule on the client with a ban.
func tellerSet(t *testing.T) *ratelimit.Set {
	t.Helper()
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		t.Fatal(err)
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "api", Key: key, Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A Responder says of each decision what the middleware says of it.
func TestResponderAnswersAsTheMiddleware(t *testing.T) {
	set := tellerSet(t)
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var seen ratelimit.Decision
	m, err := New(limiter, Config{Observe: func(_ *http.Request, v Verdict) { seen = v.Decision }})
	if err != nil {
		t.Fatal(err)
	}
	handler := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	responder := NewResponder(set)
	for i := range 4 {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		handler.ServeHTTP(w, r)
		h := make(http.Header)
		responder.WriteHeaders(h, &seen)
		for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "Retry-After"} {
			if !slices.Equal(h[name], w.Header()[name]) {
				t.Errorf("request %d: %s is %q; the middleware says %q", i, name, h[name], w.Header()[name])
			}
		}
		if seen.Allowed != (i < 2) {
			t.Fatalf("request %d: allowed %v", i, seen.Allowed)
		}
		if seen.Allowed {
			continue
		}
		body, _, status := responder.AppendBody(nil, &seen, nil, nil, h)
		if string(body) != w.Body.String() || status != w.Code {
			t.Errorf("request %d: %d %s; the middleware says %d %s", i, status, body, w.Code, w.Body)
		}
	}
}

func TestResponderWithUnknownRules(t *testing.T) {
	responder, h := NewResponder(tellerSet(t)), make(http.Header)
	for _, d := range []ratelimit.Decision{
		{Allowed: true},
		{Allowed: true, Rule: "other", Limit: 1},
		{Rule: "other", Limit: 1, RetryAfter: ratelimit.Never},
	} {
		responder.WriteHeaders(h, &d)
		if len(h) != 0 {
			t.Errorf("%+v: headers %v; want none", d, h)
		}
	}
	body, _, status := responder.AppendBody(nil, &ratelimit.Decision{Rule: "other", RetryAfter: time.Second}, nil, nil, nil)
	if !json.Valid(body) || status != 429 {
		t.Errorf("%d %s; want a problem document of status 429", status, body)
	}
}

// EventFields fills in what the middleware fills in, and leaves out the rest.
func TestEventFields(t *testing.T) {
	r := httptest.NewRequest("POST", "http://Example.COM:8080/a/../b?x=1", nil)
	r.SetBasicAuth("ada", "secret")
	r.Header.Set("X-Tenant", "t1")
	r.Header.Set("Referer", "http://r/")
	r.Header.Set("User-Agent", "a")
	r.AddCookie(&http.Cookie{Name: "session", Value: "v"})
	want := map[string]string{
		"client": "192.0.2.7", "method": "POST", "path": "/a/../b", "query": "x=1", "host": "example.com", "protocol": "HTTP/1.1",
		"referer": "http://r/", "agent": "a", "user": "ada", "tenant": "t1", "session": "v", "status": "", "account": "",
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	fields := NewEventFields(names, sources)
	var e match.Event
	fields.Fill(&e, r, Client{Addr: netip.MustParseAddr("192.0.2.7"), origin: fromHeader})
	for name, v := range want {
		if got := string(e.GetNamed(name)); got != v {
			t.Errorf("%s is %q; want %q", name, got, v)
		}
	}
	var empty EventFields
	e.Reset()
	empty.Fill(&e, r, Client{})
	for name := range want {
		if got := string(e.GetNamed(name)); got != "" {
			t.Errorf("the zero EventFields fills in %s: %q", name, strings.TrimSpace(got))
		}
	}
}
