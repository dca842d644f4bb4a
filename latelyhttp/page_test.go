package latelyhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

const pageText = "<!doctype html>\n<title>{{status}}</title>\n<p>{{ title }}<p>Try again in {{retry_after}} s. {not this} {{ nor this }}</p>"

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

func TestNewPage(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty: must be an HTML page", " \n": "empty: must be", "a\n{{rule}}\n": "line 2: {{rule}}: must be {{retry_after}}, {{status}} or {{title}}", "{{}}": "line 1: {{}}: must be",
		pageText: "", "plain": "", "{{status}}{{status}}": "",
	} {
		if _, err := NewPage(text); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	page, err := NewPage(pageText)
	if err != nil {
		t.Fatal(err)
	}
	odd := &problem{status: 429, title: `<script>"&`}
	want := "x<!doctype html>\n<title>429</title>\n<p>&lt;script&gt;&#34;&amp;<p>Try again in 7 s. {not this} {{ nor this }}</p>"
	if got := string(page.append([]byte("x"), odd, []string{"7"})); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(page.append(nil, odd, nil)); !strings.Contains(got, "in  s.") {
		t.Errorf("without a time:\n%s", got)
	}
}

// Browsers prefer the page; programs do not, whatever they accept besides.
func TestPrefersPage(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8": true, // Firefox and Chrome
		"": false, "*/*": false, "text/*": false, "application/json": false, "application/json, text/plain, */*": false, // curl and fetch libraries
		"text/html;q=0.5, application/json": false, "text/html, application/json;q=0.9": true, "text/html;q=0": false, "TEXT/HTML ; Q=0.1": true,
		"text/html;q=two": false, "text/html;q=-1": false, "text/html;q=NaN": false, "text/html;level=1;q=0.3,application/problem+json;q=0.4": false, "application/xhtml+xml": true,
		",;q=,": false, "text/htmlx": false,
	} {
		if got := prefersPage(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%q: %t; want %t", accept, got, want)
		}
	}
	if !prefersPage(http.Header{"Accept": {"*/*", "text/html"}}) || prefersPage(nil) {
		t.Error("several lines are not one list")
	}
}

func FuzzPrefersPage(f *testing.F) {
	f.Add("text/html;q=0.5, application/json;q=1")
	f.Add(",;q=;;=,text/html;Q=1")
	f.Fuzz(func(t *testing.T, accept string) {
		if prefersPage(http.Header{"Accept": {accept}}) && !strings.Contains(strings.ToLower(accept), "html") {
			t.Errorf("%q asks for HTML", accept)
		}
	})
}

// The middleware and a Responder answer a refused browser by the page, and others by a problem document.
func TestPageOfRefusals(t *testing.T) {
	page, err := NewPage(pageText)
	if err != nil {
		t.Fatal(err)
	}
	set := tellerSet(t)
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var seen ratelimit.Decision
	m, err := New(limiter, Config{Page: page, Observe: func(_ *http.Request, v Verdict) { seen = v.Decision }})
	if err != nil {
		t.Fatal(err)
	}
	handler, responder := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), NewResponder(set)
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
		if seen.Allowed {
			continue
		}
		if retry := w.Header().Get("Retry-After"); c.media != problemMedia && !strings.Contains(w.Body.String(), "in "+retry+" s.") {
			t.Errorf("the page does not have the %s seconds of Retry-After:\n%s", retry, w.Body)
		}
		body, media, status := responder.AppendBody(nil, &seen, page, r.Header, w.Header())
		if string(body) != w.Body.String() || media != c.media || status != w.Code {
			t.Errorf("a Responder answers %d %s\n%s\nthe middleware %d\n%s", status, media, body, w.Code, w.Body)
		}
	}
	if _, err := New(limiter, Config{Page: page, OnRefused: func(http.ResponseWriter, *http.Request, Verdict) {}}); err == nil || !strings.Contains(err.Error(), "Config.Page and Config.OnRefused: both set") {
		t.Errorf("Page and OnRefused: %v", err)
	}
}
