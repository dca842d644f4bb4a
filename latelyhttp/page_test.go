package latelyhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func ExampleNewPage() {
	page, err := NewPage("<p>Please try again in {{retry_after}} seconds.</p>\n")
	if err != nil {
		panic(err)
	}
	client, _ := match.NewKey(match.Fold{}, "client")
	set, _ := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{Name: "api", Key: client, Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}})
	limiter, _ := ratelimit.NewLimiter(set, ratelimit.Config{})
	m, err := New(limiter, Config{Page: page})
	if err != nil {
		panic(err)
	}
	handler := m.Wrap(http.NotFoundHandler())
	for range 2 {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "text/html")
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 404 404 page not found
	// 429 <p>Please try again in 60 seconds.</p>
}

// The middleware answers a refused browser by the page, and others by a problem document.
func TestPageOfRefusals(t *testing.T) {
	page := must.Get(NewPage("<title>{{status}}</title>\n<p>{{ title }}<p>Try again in {{retry_after}} s."))(t)
	set := tellerSet(t)
	limiter := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	m := must.Get(New(limiter, Config{Page: page}))(t)
	handler := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, c := range []struct{ accept, media, body string }{
		{"text/html", "", ""},
		{"text/html", "", ""},
		{"text/html", "text/html; charset=utf-8", "<title>429</title>\n<p>Request cannot be satisfied as assigned quota has been exceeded<p>Try again in "},
		{"*/*", "application/problem+json", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", c.accept)
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != c.media || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("request %d: %s\n%s\nwant %s\n%s", i, got, w.Body, c.media, c.body)
		}
		if retry := w.Header().Get("Retry-After"); strings.HasPrefix(c.media, "text/html") && !strings.Contains(w.Body.String(), "in "+retry+" s.") {
			t.Errorf("the page does not have the %s seconds of Retry-After:\n%s", retry, w.Body)
		}
	}
	if _, err := New(limiter, Config{Page: page, OnRefused: func(http.ResponseWriter, *http.Request, Verdict) {}}); err == nil || !strings.Contains(err.Error(), "Config.Page and Config.OnRefused: both set") {
		t.Errorf("Page and OnRefused: %v", err)
	}
}
