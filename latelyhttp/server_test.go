package latelyhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lately-go/lately/internal/test/must"
)

// echo answers with the client that m finds, so that a test over a real
// connection sees what the rules would see.
func echo(t *testing.T, c IdentityConfig) http.Handler {
	id := mustIdentity(t, c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, id.Client(r), "|", r.Header["X-Forwarded-For"])
	})
}

// get sends a raw request and returns the body.
func get(t *testing.T, network, addr, lines string) string {
	t.Helper()
	conn := must.Get(net.DialTimeout(network, addr, 5*time.Second))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n%s\r\n", lines)
	resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return string(body)
}

// Over real connections: headers of any case and number, alone, and behind the standard library's own reverse proxy, with
// the header in its Connection field to strip it.
func TestRealServer(t *testing.T) {
	defer goleak.VerifyNone(t)
	direct := httptest.NewServer(echo(t, IdentityConfig{}))
	defer direct.Close()
	trusting := httptest.NewServer(echo(t, IdentityConfig{TrustedProxies: prefixes("127.0.0.0/8")}))
	defer trusting.Close()
	behind := httptest.NewServer(echo(t, IdentityConfig{TrustedProxies: prefixes("127.0.0.0/8"), Hops: 1}))
	defer behind.Close()
	target := must.Get(url.Parse(behind.URL))(t)
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetURL(target)
			r.SetXForwarded()
		},
	})
	defer proxy.Close()

	const spoof = "x-forwarded-for: 198.51.100.66\r\nX-FORWARDED-FOR: 198.51.100.67\r\n"
	for _, c := range []struct {
		name, addr, lines, want string
	}{
		{"direct", direct.Listener.Addr().String(), spoof, "127.0.0.1|[198.51.100.66 198.51.100.67]"},
		{"trusted", trusting.Listener.Addr().String(), spoof, "198.51.100.67|[198.51.100.66 198.51.100.67]"},
		{"trusted, none", trusting.Listener.Addr().String(), "", "proxy:127.0.0.1|[]"},
		{"proxy", proxy.Listener.Addr().String(), spoof, "127.0.0.1|[198.51.100.66, 198.51.100.67, 127.0.0.1]"},
		{"proxy, stripped", proxy.Listener.Addr().String(), spoof + "Connection: X-Forwarded-For\r\n", "127.0.0.1|[198.51.100.66, 198.51.100.67, 127.0.0.1]"},
	} {
		if got := get(t, "tcp", c.addr, c.lines); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

func TestRealUnixSocket(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		config      IdentityConfig
		lines, want string
	}{
		{IdentityConfig{}, "X-Forwarded-For: 192.0.2.1\r\n", "unix|[192.0.2.1]"},
		{IdentityConfig{TrustUnix: true}, "X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1|[192.0.2.1]"},
		{IdentityConfig{TrustUnix: true}, "", "proxy:unix|[]"},
	} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Skip("SKIP: no unix sockets here:", err)
		}
		server := &httptest.Server{Listener: l, Config: &http.Server{Handler: echo(t, c.config)}}
		server.Start()
		if got := get(t, "unix", path, c.lines); got != c.want {
			t.Errorf("%+v: %s; want %s", c.config, got, c.want)
		}
		server.Close()
	}
}
