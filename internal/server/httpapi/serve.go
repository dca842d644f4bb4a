package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	c := s.calls.Get().(*call)
	c.w, c.r = w, r
	defer s.end(c)
	setHeader(w.Header(), securityHeader)
	began, before := time.Now(), c.session.Decisions()
	if err := s.serve(c); err != nil {
		c.problem(err)
	}
	if n := c.session.Decisions() - before; n > 0 {
		c.latency.Observe(time.Since(began), n)
	}
}

// end ends c. A panic of its handler ends this request and nothing else.
func (s *Server) end(c *call) {
	x := recover()
	if x == nil {
		c.end()
		s.calls.Put(c)
		return
	}
	c.giveBack()
	if x == http.ErrAbortHandler { // the way to cut a connection
		panic(x)
	}
	s.Panics.Add(1)
	s.Log.Error("a request panicked", "method", c.r.Method, "path", c.r.URL.Path, "panic", x, "stack", string(debug.Stack()))
	if c.wrote {
		panic(http.ErrAbortHandler) // the half that was sent must not look complete
	}
	c.problem(errPanic)
}

// streamMemory is about what a request of HTTP/2 takes.
const streamMemory = 16 << 10

// serve finds the route of c, checks whether the client may use it, and lets it answer.
// The cheapest checks come first.
func (s *Server) serve(c *call) (err error) {
	r := c.r
	if target, ok := strings.CutPrefix(r.RequestURI, authPath); ok && strings.HasPrefix(target, "/") {
		c.target = target // the Host is that of the request that the proxy asks about
		r = &http.Request{Method: r.Method, URL: &url.URL{Path: authPath}}
	} else if !s.isHost(r) && !isProbe(r) {
		return errHost
	}
	if err := s.find(c, r); err != nil {
		return err
	}
	if !c.route.foreign() && s.cross.Check(c.r) != nil {
		return errOrigin
	}
	if err := s.authorize(c); err != nil {
		return err
	}
	if c.r.ProtoMajor > 1 {
		// A connection has many requests at once, each with its own buffers.
		if err := c.charge(streamMemory); err != nil {
			return err
		}
	}
	if c.route.role != access.None && c.target == "" {
		err = c.readQuery()
	}
	if err == nil && c.route.method == "POST" {
		err = c.readBody()
	}
	if err != nil {
		return err
	}
	return c.route.serve(c)
}

// The media types of answers, as values of header fields.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	plainType   = []string{"text/plain; charset=utf-8"}
	streamType  = []string{"text/event-stream"}
)

// A field is a field of a header, with values that all answers share.
type field struct {
	name   string
	values []string
}

// securityHeader is the fields by which a browser neither guesses the type of an answer,
// nor keeps it, nor runs anything in it.
var securityHeader = []field{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"Cache-Control", []string{"no-store"}},
	{"Referrer-Policy", []string{"no-referrer"}},
	{"Cross-Origin-Resource-Policy", []string{"same-origin"}},
	{"Content-Security-Policy", []string{"default-src 'none'; frame-ancestors 'none'"}},
}

func setHeader(h http.Header, fields []field) {
	for i := range fields {
		h[fields[i].name] = fields[i].values
	}
}

// allowedHosts returns the names of the server that requests may use.
func allowedHosts(names []string) map[string]bool {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "[::1]": true}
	for _, name := range names {
		hosts[strings.ToLower(name)] = true
	}
	return hosts
}

// isHost reports whether the Host of r is one of the server's names. That of a web page
// whose name resolves to this address (DNS rebinding) is not.
func (s *Server) isHost(r *http.Request) bool {
	host := r.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if s.hosts[host] || local != nil && local.Network() == "unix" { // which no web page can reach
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	if addr = addr.Unmap(); addr.IsLoopback() {
		return true
	}
	return local != nil && addr == access.AddrOf(local)
}

// isProbe reports whether r is a health check without a Host, as load balancers send
// over HTTP/1.0. Browsers, because of which isHost exists, always send one.
func isProbe(r *http.Request) bool {
	return r.Host == "" && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}
