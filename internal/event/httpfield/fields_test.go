package httpfield

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/match"
)

type client string

func (c client) AppendTo(dst []byte) []byte { return append(dst, c...) }

// Fields that no request has are left out.
func TestFields(t *testing.T) {
	r := httptest.NewRequest("POST", "http://Example.COM:8080/a/../b?x=1", nil)
	r.SetBasicAuth("ada", "secret")
	r.Header.Set("X-Tenant", "t1")
	r.Header.Set("Referer", "http://r/")
	r.Header.Set("User-Agent", "a")
	r.AddCookie(&http.Cookie{Name: "session", Value: "v"})
	want := map[string]string{
		"client": "192.0.2.7", "method": "POST", "path": "/a/../b", "object": "/a/../b", "query": "x=1", "host": "example.com", "protocol": "HTTP/1.1",
		"pattern": "unrouted", "referer": "http://r/", "agent": "a", "user": "ada", "tenant": "t1", "session": "v", "status": "", "account": "",
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	fields, err := middleware.NewFields(names, []match.Source{{Field: "tenant", Header: "x-tenant"}, {Field: "session", Cookie: "session"}}, Finder(nil))
	if err == nil || len(fields) != len(want)-1 {
		t.Errorf("%d fields, %v; want all but account", len(fields), err)
	}
	var e match.Event
	fields.Fill(&e, &Source{Request: r, Client: client("192.0.2.7")})
	for name, v := range want {
		if got := string(e.GetNamed(name)); got != v {
			t.Errorf("%s is %q; want %q", name, got, v)
		}
	}
}

func TestPathOf(t *testing.T) {
	for _, c := range []struct {
		method, target, want string
	}{
		{"GET", "http://example.com", "/"}, // the absolute form, without path
		{"GET", "http://example.com?x", "/"},
		{"GET", "/", "/"},
		{"GET", "/a%20b", "/a%20b"},
		{"GET", "/a%2Fb", "/a%2Fb"},
		{"GET", "/login#x", "/login#x"},
		{"GET", `/x\..\login`, `/x\..\login`},
		{"GET", "/a b", "/a b"},
		{"OPTIONS", "*", "*"},
		{"CONNECT", "example.com:443", ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method = c.method
		u, err := url.ParseRequestURI(c.target)
		if c.method == "CONNECT" {
			u, err = &url.URL{Host: c.target}, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		if got := pathOf(r); got != c.want {
			t.Errorf("%s %s: %q; want %q", c.method, c.target, got, c.want)
		}
	}
}

// A RawPath that a handler has left, after changing Path, is ignored.
func TestPathOfChangedURL(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL = &url.URL{Path: "/other", RawPath: "/login#x"}
	if got := pathOf(r); got != "/other" {
		t.Errorf("the path is %q; want /other", got)
	}
}
