package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// A route is one entry of the table of routes. Its fields have no names there, so that
// the compiler rejects a route without a role.
type route struct {
	method string      // "" is any
	path   string      // as a pattern of http.ServeMux
	role   access.Role // that the client needs; access.None is everyone
	handler
	id, summary string // for the OpenAPI document
	query       []parameter
}

// A handler answers requests.
type handler struct {
	serve   func(*call) error
	in, out any    // values of the types of the body and of the answer
	status  int    // of a successful answer; 0 is 200
	media   string // of the answer; "" is JSON
}

// A parameter is one parameter of a query. A required one may be repeated.
type parameter struct {
	name, description, example string
	required                   bool
}

// queryHandler returns a handler that answers with f's result.
func queryHandler[Out any](f func(*call) (Out, error)) handler {
	var out Out
	return handler{out: out, serve: func(c *call) error {
		v, err := f(c)
		return c.answer(v, err)
	}}
}

// bodyHandler returns a handler that decodes the body and answers with f's result.
func bodyHandler[In, Out any](f func(*call, *In) (Out, error)) handler {
	var in In
	var out Out
	return handler{in: in, out: out, serve: func(c *call) error {
		var req In
		if err := c.decode(&req); err != nil {
			return err
		}
		v, err := f(c, &req)
		return c.answer(v, err)
	}}
}

// judgeHandler returns a handler that judges the items of a body, or one of such a list, on these terms.
func judgeHandler(in any, terms engine.Terms, forms string, lists ...string) handler {
	return handler{in: in, out: oneOf{api.Decision{}, api.Results{}}, serve: func(c *call) error { return c.judge(terms, forms, lists) }}
}

// created returns h with the status of an answer to something that was created.
func created(h handler) handler {
	h.status = http.StatusCreated
	return h
}

// textHandler returns a handler that answers with a text of that media type.
func textHandler(serve func(*call) error, media string) handler {
	return handler{serve: serve, out: "", media: media}
}

// The paths of routes that differ from the others.
const (
	authPath       = "/v1/auth"
	answerPath     = "/v1/auth-outcome"
	rulesCheckPath = "/v1/rules/check" // whose body is YAML
	countersPath   = "/v1/counters/"   // with names that may have slashes
	feedPath       = "/v1/feeds/events"
)

// routes returns the table of routes, in the order of the document. Those of a kind are beside their handlers.
func routes() []route {
	return slices.Concat(decisionRoutes(), counterRoutes(), banRoutes(), bouncerRoutes(), hotRoutes(), serverRoutes())
}

// serverRoutes returns the routes about the server: rules, state, sessions and files.
func serverRoutes() []route {
	return []route{
		{"GET", "/v1/rates", access.Read, queryHandler(listRates), "rates", "The decisions of the last span, cut into parts", []parameter{
			{"span", "from 1s to 24h; 1m by default", "1m", false},
			{"points", "how many parts, up to 1440", "60", false},
			{"rules", "1 for those of each rule as well, hot rules included; points times rules is at most 8192 then", "1", false},
		}},
		{"GET", "/v1/rules", access.Read, queryHandler(listRules), "rules", "The rules in force", nil},
		{"POST", rulesCheckPath, access.Admin, handler{serve: queryHandler(checkRules).serve, in: "", out: api.RulesValidation{}}, "checkRules", "Return the meaning of a rules file, or its mistakes", nil},
		{
			"POST", "/v1/rules/try", access.Admin, bodyHandler(tryRules), "tryRules",
			"Judge the recent events of the server under a draft of the rules file, and return the differences; the rules do not change", nil,
		},
		{
			"POST", "/v1/rules/reload", access.Admin, bodyHandler(reload), "reload",
			"Read the rules file again, and return the changes; if it has mistakes, or would drop bans, the rules do not change", nil,
		},
		{"POST", "/v1/demo/stop", access.Admin, bodyHandler(stopDemo), "stopDemo", "End the made-up traffic of a server that was started with --demo", nil},
		{"GET", "/v1/status", access.Read, queryHandler(status), "status", "The state of the server", nil},
		{"GET", "/v1/events", access.Read, textHandler(subscribe, streamType[0]), "events", "A stream of bans, unbans, hot keys and rule changes as they happen, and of rates every second", nil},
		{"POST", "/v1/login", access.None, bodyHandler(login), "login", "Begin a session of 12 hours with a token, for browsers", nil},
		{"POST", "/v1/logout", access.None, bodyHandler(logout), "logout", "End the session", nil},
		{"GET", "/metrics", access.Read, textHandler(scrape, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"), "metrics", "Metrics for Prometheus", nil},
		{"GET", "/openapi.json", access.Read, handler{serve: openAPI, out: object{}}, "openapi", "The OpenAPI document of these routes", nil},
		{"GET", "/healthz", access.None, textHandler(alive, plainType[0]), "alive", "Answer that the server is running", nil},
		{"GET", "/readyz", access.None, textHandler(ready, plainType[0]), "ready", "Answer whether the server is ready: 200, or 503", nil},
		{"GET", "/{$}", access.None, textHandler(index, media[".html"]), "console", "The console", nil},
		{"GET", "/console/{name}", access.None, textHandler(consoleFile, "*/*"), "consoleFile", "A file of the console", nil},
	}
}

// foreign reports whether the requests of t come from a proxy, for any client: they may
// have been sent by pages of other origins, and their cookies and Authorization are those
// of another server.
func (t *route) foreign() bool { return t.path == authPath || t.path == answerPath }

const (
	maxBody  = 1 << 20
	maxLogin = 4 << 10 // of a body from clients that need no role
	maxFeed  = 4 << 20 // of a batch of a follower
)

// maxBody returns how long a body of t may be.
func (t *route) maxBody() int {
	switch {
	case t.role == access.None:
		return maxLogin
	case t.path == feedPath:
		return maxFeed
	}
	return maxBody
}

// newMux returns the router of these routes.
func newMux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for i := range routes {
		t := &routes[i]
		mux.Handle(strings.TrimSpace(t.method+" "+t.path), t)
	}
	return mux
}

// ServeHTTP makes a route a handler for http.ServeMux, which only finds it.
func (*route) ServeHTTP(http.ResponseWriter, *http.Request) {}

// find sets the route of c and the name in its path for r, or returns an error.
func (s *Server) find(c *call, r *http.Request) error {
	// The name of a counter may have slashes, which must be escaped for ServeMux.
	if rest, ok := strings.CutPrefix(r.URL.Path, countersPath); ok {
		if i := strings.LastIndexByte(rest, '/'); i >= 0 {
			c.name = rest[:i]
			r.URL.RawPath = countersPath + url.PathEscape(c.name) + rest[i:]
		}
	}
	if c.route = s.routeOf(r); c.route != nil {
		return nil
	}
	var allowed []string // methods of the path
	for _, method := range []string{"GET", "HEAD", "POST"} {
		if s.routeOf(&http.Request{Method: method, URL: r.URL}) != nil {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return errPath
	}
	allow := strings.Join(allowed, ", ")
	return problemf(http.StatusMethodNotAllowed, api.BadArg, "method: %s: must be %s", clip(r.Method), allow).with("Allow", allow)
}

// routeOf returns the route of r, or nil.
func (s *Server) routeOf(r *http.Request) *route {
	h, _ := s.mux.Handler(r)
	t, _ := h.(*route)
	return t
}
