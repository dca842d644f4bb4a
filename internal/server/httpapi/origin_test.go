package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// Requests that a foreign web page can make a browser send change nothing, and get no data, on a server without tokens.
func TestForeignPages(t *testing.T) {
	s := newServer(t, nil)
	for i := range s.routes {
		route := &s.routes[i]
		r := sample(route)
		name := r.method + " " + r.path

		rebound := r // a name of the page's own that resolves to this address
		for _, host := range []string{"evil.example", "evil.example:7380", "localhost.evil.example", "192.0.2.200", "", "[2001:db8::1]:7380", "127.0.0.1.evil.example"} {
			if rebound.host = host; host == "" {
				rebound.host = "."
			}
			if w := ask(s, rebound); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s with Host %q: %d", name, host, w.Code)
			}
		}
		if r.method != "POST" {
			continue
		}
		for _, media := range []string{"text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "text/plain, application/json", ";"} {
			form := r
			form.media = media
			wantProblem(t, ask(s, form), 415, api.BadArg)
		}
		foreign := r
		foreign.origin = "https://evil.example"
		wantProblem(t, ask(s, foreign), 403, api.NoPerm)
		foreign.origin = "null"
		wantProblem(t, ask(s, foreign), 403, api.NoPerm)
		fetched := r
		fetched.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
		wantProblem(t, ask(s, fetched), 403, api.NoPerm)
	}
	if n := s.Engine.Totals(); n != (api.Totals{Errors: n.Errors}) {
		t.Errorf("something was counted: %+v", n)
	}
	// The requests refused above are answered without the wrong header.
	for _, r := range []request{
		{host: "localhost"},
		{host: "LOCALHOST:7380"},
		{host: "127.0.0.1:1"},
		{host: "[::1]:7380"},
		{host: "127.0.0.2"},
		{origin: "http://localhost:7380"},
		{media: "application/json; charset=utf-8"},
	} {
		r.method, r.path, r.body = "POST", "/v1/check", `{"event":{"client":"192.0.2.1","path":"/"}}`
		if w := ask(s, r); w.Code != 200 {
			t.Errorf("%+v: %d %s", r, w.Code, w.Body)
		}
	}
	if n := s.Engine.Totals().Allowed; n != 7 {
		t.Errorf("%d were counted", n)
	}
}

func TestHostsOfConfig(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Hosts = []string{"Lately.example.org"} })
	for host, want := range map[string]int{"lately.example.org": 200, "lately.example.ORG:80": 200, "lately.example.org.": 200, "x.lately.example.org": 421} {
		if w := ask(s, request{method: "GET", path: "/healthz", host: host}); w.Code != want {
			t.Errorf("Host %q: %d; want %d", host, w.Code, want)
		}
	}
}

// Every answer, good or bad, has the fields that keep a browser from misusing it.
func TestHardenedAnswers(t *testing.T) {
	s := newServer(t, nil)
	for i := range s.routes {
		r := sample(&s.routes[i])
		for _, host := range []string{"localhost", "evil.example"} {
			r.host = host
			h := ask(s, r).Header()
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
				"Content-Security-Policy": "frame-ancestors 'none'", "Cache-Control": "no-",
			} {
				if !strings.Contains(h.Get(name), want) {
					t.Errorf("%s %s: %s is %q; want %s in it", r.method, r.path, name, h.Get(name), want)
				}
			}
			if got := h.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s: other origins are let in: %s", r.path, got)
			}
		}
	}
}

// A GET changes nothing. Forward-auth, which counts by nature, requires a field that no page can make a browser send.
func TestGetChangesNothing(t *testing.T) {
	s := newServer(t, nil)
	post(s, "/v1/check", `{"event":{"client":"192.0.2.1","path":"/"}}`)
	must.Get(s.Engine.Bans().Ban("flood", []string{"192.0.2.3"}, 1e12, "", ""))(t)
	state := func() string {
		return get(s, "/v1/bans").Body.String() + get(s, "/v1/counters/requests/sum?key=192.0.2.1").Body.String() + get(s, "/v1/counters").Body.String()
	}
	before := state()
	totals := s.Engine.Totals()
	for i := range s.routes {
		if r := sample(&s.routes[i]); r.method == "GET" {
			ask(s, r)
			r.path += "?rule=flood&key=192.0.2.3&field=client&value=192.0.2.1"
			ask(s, r)
		}
	}
	after := s.Engine.Totals()
	if after.Errors = totals.Errors; after != totals {
		t.Errorf("totals are %+v; were %+v", after, totals)
	}
	if now := state(); now != before {
		t.Errorf("the state is\n%s\nwas\n%s", now, before)
	}
}

func TestFiles(t *testing.T) {
	s := newServer(t, nil)
	w := get(s, "/")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "<html") || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("/: %d %v", w.Code, w.Header())
	}
	for name, f := range s.files {
		path := "/console/" + name
		w := get(s, path)
		tag := w.Header().Get("Etag")
		if w.Code != 200 || w.Body.String() != string(f.data) || len(tag) < 20 || strings.HasPrefix(tag, "W/") {
			t.Errorf("%s: %d, ETag %q", path, w.Code, tag)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy is %q", path, csp)
		}
		w = ask(s, request{method: "GET", path: path, header: http.Header{"If-None-Match": {tag}}})
		if w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%s again: %d with %d bytes", path, w.Code, w.Body.Len())
		}
	}
	for _, path := range []string{"/console/nothing.js", "/console/../routes.go", "/console/console.go", "/console/.", "/index.html/"} {
		if w := get(s, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Load balancers check a server's health without a host name; no other request without one is answered.
func TestProbesWithoutHost(t *testing.T) {
	s := newServer(t, nil)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/status": 421, "/": 421, "/v1/healthz": 421} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host, r.ProtoMinor = "", 0
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s; want %d", path, w.Code, w.Body, want)
		}
	}
}
