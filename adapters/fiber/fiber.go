// Package latelyfiber puts a [latelyhttp.Middleware] before handlers of fiber.
//
//	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
//	...
//	app := fiber.New()
//	app.Use(latelyfiber.New(limits))
//
// Headers, bodies and the identity of clients are those of latelyhttp. In particular
// the client is the peer of the connection unless latelyhttp.Config has proxies:
// fiber's IP, ProxyHeader and TrustProxy are not used.
//
// A rule on "pattern" sees the path of the route that New is a handler of:
// /items/:id in app.Get("/items/:id", latelyfiber.New(limits), item), but "/" for
// all requests in app.Use.
package latelyfiber

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/lately-go/lately/latelyhttp"
)

// New returns m as a fiber handler. A refused request is answered, and the
// handlers after this one are not called; an allowed one counts under
// in-flight limits until they have returned or panicked, which is
// before a streamed body is sent. Its answer is then counted by rules that count
// answers; that of an error is the code of a fiber.Error, or 500.
//
// It is for any number of apps, and safe for concurrent use. Since fiber's
// requests are not those of net/http, each is copied, without its body, for m.
func New(m *latelyhttp.Middleware) fiber.Handler {
	return func(c fiber.Ctx) error {
		w := &answer{c: c, header: make(http.Header, 4)}
		lease, ok := m.Allow(w, newRequest(c))
		w.sendHeader()
		if !ok {
			return nil // it has been answered
		}
		defer lease.Done()
		status := http.StatusInternalServerError // if the handlers panic
		defer func() { lease.Answer(status, size(c.Response())) }()
		err := c.Next()
		var known *fiber.Error
		switch {
		case err == nil:
			status = c.Response().StatusCode()
		case errors.As(err, &known):
			status = known.Code
		}
		return err
	}
}

// size returns how long the body of a response is: 0 if it is a stream of unknown length.
func size(r *fasthttp.Response) int64 {
	if r.IsBodyStream() { // which Body would read
		return int64(max(r.Header.ContentLength(), 0))
	}
	return int64(len(r.Body()))
}

// Field makes a function of fiber's context one for latelyhttp.Config.Fields:
// for what an earlier handler has put there, such as a user.
//
//	latelyhttp.Config{Fields: map[string]func(*http.Request) string{
//		"user": latelyfiber.Field(func(c fiber.Ctx) string { return fiber.Locals[string](c, "user") }),
//	}}
//
// Requests that do not come through New do not have the field.
func Field(f func(fiber.Ctx) string) func(*http.Request) string {
	return func(r *http.Request) string {
		if c, ok := r.Context().Value(contextKey{}).(fiber.Ctx); ok {
			return f(c)
		}
		return ""
	}
}

// contextKey is the key in a request's context of fiber's.
type contextKey struct{}

// newRequest returns c's request as one of net/http, with an empty body.
func newRequest(c fiber.Ctx) *http.Request {
	in := c.Request()
	remote := c.RequestCtx().RemoteAddr()
	ctx := context.WithValue(c.Context(), contextKey{}, c)
	if remote.Network() == "unix" {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(remote))
	}
	r := &http.Request{
		Method:        string(in.Header.Method()),
		URL:           newURL(c),
		Proto:         string(in.Header.Protocol()),
		Header:        make(http.Header, in.Header.Len()),
		Body:          http.NoBody,
		ContentLength: int64(in.Header.ContentLength()),
		Host:          string(in.URI().Host()),
		RequestURI:    string(in.Header.RequestURI()),
		RemoteAddr:    remote.String(),
		TLS:           c.RequestCtx().TLSConnectionState(),
		Pattern:       c.FullPath(),
	}
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(r.Proto)
	for name, value := range in.Header.All() {
		// Each line is a value, as in net/http: the nearest proxy wrote the last.
		r.Header.Add(string(name), string(value))
	}
	r.Header.Del("Host") // which net/http has in the request
	return r.WithContext(ctx)
}

// newURL returns the target of c's request. If net/url rejects it, it is the path that
// fasthttp has parsed.
func newURL(c fiber.Ctx) *url.URL {
	in := c.Request()
	u, err := url.ParseRequestURI(string(in.Header.RequestURI()))
	if err != nil {
		return &url.URL{Path: string(in.URI().Path()), RawQuery: string(in.URI().QueryString())}
	}
	return u
}

// An answer is c's response as an http.ResponseWriter.
type answer struct {
	c      fiber.Ctx
	header http.Header
	sent   bool
}

// Header returns the header fields, which are sent with the status.
func (w *answer) Header() http.Header { return w.header }

// WriteHeader sets the status and the header fields, once.
func (w *answer) WriteHeader(status int) {
	if w.sent {
		return
	}
	w.c.Status(status)
	w.sendHeader()
}

// Write appends to the body.
func (w *answer) Write(b []byte) (int, error) {
	w.sendHeader()
	w.c.Response().AppendBody(b)
	return len(b), nil
}

// sendHeader sets the header fields, unless it has been done.
func (w *answer) sendHeader() {
	if w.sent {
		return
	}
	w.sent = true
	out := &w.c.Response().Header
	for name, values := range w.header {
		for n, value := range values {
			if n == 0 && !isList(name) {
				out.Set(name, value)
			} else {
				out.Add(name, value)
			}
		}
	}
}

// isList reports whether a field is added to those that earlier handlers have set.
func isList(name string) bool { return name == "Ratelimit" || name == "Ratelimit-Policy" }
