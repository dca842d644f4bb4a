package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	c := s.calls.Get().(*call)
	c.begin(w, r)
	defer s.end(c)
	harden(w.Header())
	began, before := time.Now(), c.caller.Decisions()
	if err := s.serve(c); err != nil {
		c.problem(err)
	}
	if n := c.caller.Decisions() - before; n > 0 {
		c.latency.Observe(time.Since(began), n)
	}
}

// end lets go of c, and catches what its handler has thrown: it is the end of this
// request and of nothing else.
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
		panic(http.ErrAbortHandler) // the half that was sent must not look whole
	}
	c.problem(errPanic)
}

// streamMemory is about what a request of HTTP/2 takes.
const streamMemory = 16 << 10

// serve finds out what c asks for and whether it may, and lets the route answer.
// What it asks is looked at from the cheapest to the dearest.
func (s *Server) serve(c *call) error {
	path := c.r.URL.Path
	if rest, ok := strings.CutPrefix(c.r.RequestURI, authPath); ok && strings.HasPrefix(rest, "/") {
		path, c.asked = authPath, rest // the Host is that of the request that is asked about
	} else if !s.isHost(c.r) && !isProbe(c.r) {
		return errHost
	}
	route, name, allowed := s.router.find(c.r.Method, path)
	if route == nil {
		return notFound(c, allowed)
	}
	c.route, c.name = route, name
	if !route.foreign && s.cross.Check(c.r) != nil {
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
	if route.body != noBody {
		if err := c.readBody(); err != nil {
			return err
		}
	}
	return route.handle(c)
}

// The values of header fields that every answer has, shared by all of them.
var (
	noSniff     = []string{"nosniff"}
	noStore     = []string{"no-store"}
	noReferrer  = []string{"no-referrer"}
	sameOrigin  = []string{"same-origin"}
	inert       = []string{"default-src 'none'; frame-ancestors 'none'"}
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
)

// harden sets the fields that keep a browser from making of an answer what it is
// not.
func harden(h http.Header) {
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	h["Referrer-Policy"] = noReferrer
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	h["Content-Security-Policy"] = inert
}

// allowedHosts returns the names of the server that requests may use.
func allowedHosts(names []string) (map[string]bool, error) {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "[::1]": true}
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "/@ :") {
			return nil, fmt.Errorf("Config.Hosts: %q: must be a host name without port, such as lately.example.org", name)
		}
		hosts[strings.ToLower(name)] = true
	}
	return hosts, nil
}

// isHost reports whether r calls the server by a name that is its own. A page that
// had its own name resolve to this address, and so got past the browser's same-origin
// rule, does not.
func (s *Server) isHost(r *http.Request) bool {
	host := r.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	if s.hosts[host] {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if s.hosts[host] {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	if addr = addr.Unmap(); addr.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local != nil && addr == access.AddrOf(local)
}

// isProbe reports whether r asks after the server's health without calling it by any
// name, as load balancers do over HTTP/1.0. A browser, which is what isHost is about,
// always has a name.
func isProbe(r *http.Request) bool {
	return r.Host == "" && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}
