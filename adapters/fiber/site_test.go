package latelyfiber_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// newLimits returns a middleware of one rule: n an hour for each key of fields.
func newLimits(t testing.TB, c latelyhttp.Config, n uint64, fields ...string) *latelyhttp.Middleware {
	t.Helper()
	return newLimitsOf(t, c, ratelimit.Rule{Name: "rule", Key: newKey(t, fields...), Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}})
}

// inFlight is a rule of n requests of a client at one time.
func inFlight(t testing.TB, n uint64) ratelimit.Rule {
	return ratelimit.Rule{Name: "at-once", Key: newKey(t, "client"), Algorithm: ratelimit.InFlight, Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}}
}

func newKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	key, err := match.NewKey(match.Fold{}, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newLimitsOf(t testing.TB, c latelyhttp.Config, rule ratelimit.Rule) *latelyhttp.Middleware {
	t.Helper()
	limiter, err := ratelimit.New(rule)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, c)
	if err != nil {
		t.Fatal(err)
	}
	return limits
}

// newApp returns an app with handlers before a route that counts what reaches it.
func newApp(reached *int, handlers ...any) *fiber.App {
	app := fiber.New()
	for _, h := range handlers {
		app.Use(h)
	}
	app.All("/items/:id", func(c fiber.Ctx) error {
		*reached++
		return c.SendString("item " + c.Params("id"))
	})
	return app
}

// A site is an app that listens to a pipe in memory.
type site struct {
	t   testing.TB
	lis *fasthttputil.InmemoryListener
}

// serve runs app until the test ends. It sees its peers at remote, an address
// and port.
func serve(t testing.TB, app *fiber.App, remote net.Addr) site {
	lis := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() {
		done <- app.Listener(disguise{lis, remote}, fiber.ListenConfig{DisableStartupMessage: true})
	}()
	t.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return site{t, lis}
}

func tcp(addr string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)) }

// disguise is a listener whose connections say that they come from elsewhere.
type disguise struct {
	net.Listener
	remote net.Addr
}

func (l disguise) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return conn, err
	}
	return disguisedConn{conn, l.remote}, nil
}

type disguisedConn struct {
	net.Conn
	remote net.Addr
}

func (c disguisedConn) RemoteAddr() net.Addr { return c.remote }

// send sends a request as text, so that nothing tidies it, with header lines.
func (s site) send(method, target string, lines ...string) (*http.Response, string) {
	s.t.Helper()
	conn, err := s.lis.Dial()
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	lines = append([]string{method + " " + target + " HTTP/1.1", "Host: shop.example", "Connection: close"}, lines...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r, string(b)
}
