package latelyfiber_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp/fasthttputil"
)

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

// serve runs app until the test ends. It sees its peers at remote.
func serve(t testing.TB, app *fiber.App, remote func() net.Addr) site {
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

// at is a peer of all connections, an address and port.
func at(addr string) func() net.Addr { return func() net.Addr { return tcp(addr) } }

func tcp(addr string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)) }

// disguise is a listener whose connections have other remote addresses.
type disguise struct {
	net.Listener
	remote func() net.Addr
}

func (l disguise) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return conn, err
	}
	return disguisedConn{conn, l.remote()}, nil
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
