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

// decisionFilters are the parameters of both routes for bouncers, which may send others.
var decisionFilters = []parameter{
	{"scopes", "only of these scopes, with commas between them", "ip,range", false},
	{"origins", "only of these origins: crowdsec for bans of rules, cscli for bans by hand", "crowdsec", false},
	{"scenarios_containing", "only of rules with one of these texts in lately/ and their name", "login", false},
	{"scenarios_not_containing", "only of rules without them", "login", false},
}

// The paths of routes that differ from the others.
const (
	authPath       = "/v1/auth"
	answerPath     = "/v1/auth-outcome"
	rulesCheckPath = "/v1/rules/check" // whose body is YAML
	countersPath   = "/v1/counters/"   // with names that may have slashes
	feedPath       = "/v1/feeds/events"
)

// routes returns the table of routes, in the order of the document.
func routes() []route {
	return slices.Concat(decisionRoutes(), keyRoutes(), serverRoutes())
}

// keyRoutes returns the routes about keys: counters, bans and lists.
func keyRoutes() []route {
	key := parameter{"key", "the key; once for each field of the counter's key, in order", "203.0.113.9", true}
	span := parameter{"span", "a span that ends now; by default the counter's longest", "1m", false}
	n := parameter{"n", "how many, up to 1000", "20", false}
	hotRule := parameter{"rule", "under this hot rule only", "product", false}
	return []route{
		{"GET", "/v1/counters", access.Read, queryHandler(listCounters), "counters", "List the counters", nil},
		{"POST", countersPath + "{name}/add", access.Check, bodyHandler(add), "add", "Add to a key of a counter; a counter that does not exist is created", nil},
		{"GET", countersPath + "{name}/sum", access.Read, queryHandler(sum), "sum", "The count of a key", []parameter{key, span}},
		{"GET", countersPath + "{name}/rate", access.Read, queryHandler(rate), "rate", "A key's events per second", []parameter{key, span}},
		{"GET", countersPath + "{name}/top", access.Read, queryHandler(top), "top", "The keys with the largest counts", []parameter{
			n, span,
			{"pattern", "only keys with a value that this glob matches", "192.0.2.*", false},
			{"network", "only keys with an address in this network", "192.0.2.0/24", false},
		}},
		{"GET", "/v1/key", access.Read, queryHandler(inspectKey), "key", "The counts, decisions, bans and hot state of one key", []parameter{
			{"field", "a field of the key; once for each, in order", "client", true},
			{"value", "its value; as many as fields", "203.0.113.9", true},
		}},
		{"GET", "/v1/explain", access.Read, queryHandler(explain), "explain", "Recently refused keys, the reasons, and the rules' current decisions", []parameter{
			{"key", "a value that the keys have: an address, a user or a path; several if they must have all of them", "203.0.113.9", true},
		}},
		{"GET", "/v1/bans", access.Read, queryHandler(listBans), "bans", "List the current bans, the newest first", []parameter{
			{"rule", "under this rule only", "login", false},
			{"q", "with this text in the key or the reason", "203.0", false},
			{"limit", "how many, up to 1000", "100", false},
			{"cursor", "next of the page before; by default the first page", "AAAAAAAAAAAAAAAA", false},
		}},
		{"POST", "/v1/bans", access.Admin, created(bodyHandler(addBan)), "ban", "Ban a key by hand; returns when the ban is on disk", nil},
		{
			"POST", "/v1/bans/unban", access.Admin, bodyHandler(unban), "unban",
			"End the ban of a key, or all bans that match a rule, a pattern of the key and a network, of those given", nil,
		},
		{"GET", decisionsPath, access.Read, handler{serve: listDecisions, out: api.CrowdSecDecisions{}}, "decisions", "The bans in force as decisions of CrowdSec, whose bouncers ask here with X-Api-Key: TOKEN", slices.Concat([]parameter{
			{"ip", "only those about this address or around it", "203.0.113.9", false},
			{"range", "only those around this network", "203.0.113.0/24", false},
			{"contains", "false for those in the address or network instead", "false", false},
			{"scope", "Ip or Range", "Ip", false},
			{"value", "only those of this address or network", "203.0.113.9", false},
			{"type", "ban, which all are", "ban", false},
		}, decisionFilters)},
		{"GET", decisionsPath + "/stream", access.Read, handler{serve: streamDecisions, out: api.CrowdSecStream{}}, "decisionStream", "Changes of the decisions since the last request of this bouncer", slices.Concat([]parameter{
			{"startup", "true for all decisions", "true", false},
		}, decisionFilters)},
		{"GET", "/v1/refused", access.Read, queryHandler(listRefused), "refused", "List the keys that were refused most, by limits and by bans", []parameter{
			n, {"span", "from 1s to 1h; 1m by default", "1m", false},
		}},
		{"GET", "/v1/hot", access.Read, queryHandler(listHot), "hot", "List the hot keys, the newest first", []parameter{hotRule}},
		{"POST", "/v1/hot", access.Admin, created(bodyHandler(addHot)), "addHot", "Make a key hot by hand, for the hold of its rule or for a time", nil},
		{"POST", "/v1/hot/remove", access.Admin, bodyHandler(removeHot), "removeHot", "Make a key cold by hand, and delete its counts", nil},
		{"POST", "/v1/hot/ignore", access.Admin, bodyHandler(ignoreHot), "ignoreHot", "Never count a key under a hot rule, or count it again", nil},
		{"POST", "/v1/hot/report", access.Check, bodyHandler(reportHot), "reportHot", "Count events of keys under a hot rule that a client has counted, each some time ago", nil},
		{"POST", "/v1/hot/cache", access.Check, bodyHandler(countCache), "countCache", "Count the reads of a process's caches since its last report", nil},
		{"POST", "/v1/hot/changed", access.Check, bodyHandler(changedHot), "changedHot", "Tell watchers of hot keys that the value of a key changed", nil},
		{"GET", "/v1/hot/stats", access.Read, queryHandler(hotStats), "hotStats", "What was reported under hot rules, and what caches saved", []parameter{hotRule}},
		{"GET", "/v1/hot/watch", access.Read, handler{serve: watchHot, out: api.HotUpdate{}, media: streamType[0]}, "watchHot", "A stream of the keys that are hot, as a reset, and then of each change; the data of each event is a HotUpdate", []parameter{hotRule}},
	}
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

// find sets the route of c and the name in it to those of r, or returns an error.
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
