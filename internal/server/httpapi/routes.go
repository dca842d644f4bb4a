package httpapi

import (
	"net/http"

	"github.com/lately-go/lately/api"
)

// routes returns all routes, in the order in which they are documented.
func routes() []route {
	return append(append(decisionRoutes(), stateRoutes()...), serverRoutes()...)
}

// decisionRoutes is what programs ask.
func decisionRoutes() []route {
	return []route{
		{
			method: "POST", path: "/v1/check", need: toCheck, body: jsonBody, handle: check, id: "check", in: api.CheckRequest{}, out: oneOf{api.Decision{}, api.Results{}},
			summary: "Count an event, or several, and judge it under all rules that match it",
		},
		{
			method: "POST", path: "/v1/take", need: toCheck, body: jsonBody, handle: take, id: "take", fails: []int{http.StatusNotFound}, in: api.TakeRequest{}, out: oneOf{api.Decision{}, api.Results{}},
			summary: "Count an event of a key, or several, and judge it under one rule",
		},
		{
			method: "POST", path: "/v1/peek", need: toCheck, body: jsonBody, handle: peek, id: "peek", fails: []int{http.StatusNotFound}, in: api.PeekRequest{}, out: oneOf{api.Decision{}, api.Results{}},
			summary: "Say what check or take would, and change nothing",
		},
		{
			method: "POST", path: "/v1/refund", need: toCheck, body: jsonBody, handle: refund, id: "refund", fails: []int{http.StatusNotFound}, in: api.RefundRequest{}, out: api.Refunded{},
			summary: "Give back what a key has used under a rule, the oldest first",
		},
		{
			method: "POST", path: "/v1/release", need: toCheck, body: jsonBody, handle: release, id: "release", fails: []int{http.StatusNotFound}, in: api.RefundRequest{}, out: api.Released{},
			summary: "End events under way of a key under an in-flight rule, the oldest first",
		},
		{
			method: "POST", path: "/v1/throttle", need: toCheck, body: jsonBody, handle: throttle, id: "throttle", in: api.ThrottleRequest{}, out: api.Throttled{},
			summary: "Judge an event of a key by the limit that the request brings (GCRA)",
		},
		{
			method: "POST", path: "/v1/reset", need: toAdmin, body: jsonBody, handle: reset, id: "reset", fails: []int{http.StatusNotFound}, in: api.RuleKey{}, out: api.Nothing{},
			summary: "Forget what a key has used under a rule; bans go on",
		},
		{
			method: "POST", path: "/v1/counters/{name}/add", need: toCheck, body: jsonBody, handle: add, id: "add", fails: []int{http.StatusServiceUnavailable}, in: api.AddRequest{}, out: api.Nothing{},
			summary: "Add to a key of a counter; a counter that is not there is made",
		},
		{
			method: "*", path: authPath, need: toCheck, handle: forwardAuth, foreign: true, id: "forwardAuth", fails: []int{http.StatusTooManyRequests}, status: http.StatusNoContent,
			summary: "Tell a trusted proxy whether to serve a request: 204, or 429 if it is refused; with the target of the request behind the path, as Envoy asks, 200 or 429",
			query:   []parameter{{name: "refuse", about: "the status of a refusal instead of 429: nginx knows 403 only", example: "403"}},
		},
	}
}

// stateRoutes is what is known, and what can be changed.
func stateRoutes() []route {
	key := []parameter{keyQuery, spanQuery}
	return []route{
		{method: "GET", path: "/v1/counters", need: toRead, handle: listCounters, id: "counters", out: api.CounterList{}, summary: "List the counters"},
		{method: "GET", path: "/v1/counters/{name}/sum", need: toRead, handle: sum, id: "sum", query: key, out: api.Bounds{}, summary: "The bounds of a key's count"},
		{method: "GET", path: "/v1/counters/{name}/rate", need: toRead, handle: rate, id: "rate", query: key, out: api.KeyRate{}, summary: "A key's events a second"},
		{
			method: "GET", path: "/v1/counters/{name}/top", need: toRead, handle: top, id: "top", out: api.TopList{}, summary: "The keys with the largest counts",
			query: []parameter{
				{name: "n", about: "how many, up to 1000", example: "20"},
				spanQuery,
				{name: "pattern", about: "only keys with a value that this glob matches", example: "192.0.2.*"},
				{name: "network", about: "only keys with an address in this network", example: "192.0.2.0/24"},
			},
		},
		{
			method: "GET", path: "/v1/key", need: toRead, handle: aboutKey, id: "key", out: api.KeyReport{}, summary: "What is known of one key: counts, what rules would say, bans",
			query: []parameter{
				{name: "field", about: "a field of the key; once for each, in order", example: "client", many: true, needed: true},
				{name: "value", about: "its value; as many as fields", example: "203.0.113.9", many: true, needed: true},
			},
		},
		{
			method: "GET", path: "/v1/bans", need: toRead, handle: listBans, id: "bans", fails: []int{http.StatusServiceUnavailable}, out: api.BanPage{}, summary: "List the bans that hold, those that began last first",
			query: []parameter{
				{name: "rule", about: "under this rule only", example: "login"},
				{name: "q", about: "with this text in the key or the reason", example: "203.0"},
				{name: "limit", about: "how many, up to 1000", example: "100"},
				{name: "cursor", about: "next of the page before; the first page if it is left out", example: "AAAAAAAAAAAAAAAA"},
			},
		},
		{
			method: "POST", path: "/v1/bans", need: toAdmin, body: jsonBody, handle: addBan, id: "ban", fails: []int{http.StatusNotFound}, in: api.BanRequest{}, out: api.Ban{}, status: http.StatusCreated,
			summary: "Ban a key by hand; the answer comes when the ban is on disk",
		},
		{
			method: "POST", path: "/v1/bans/unban", need: toAdmin, body: jsonBody, handle: unban, id: "unban", fails: []int{http.StatusNotFound}, in: api.UnbanRequest{}, out: api.Unbanned{},
			summary: "End the ban of a key, or all bans that match a rule, a pattern of the key and a network; what is given must all match",
		},
		{
			method: "GET", path: "/v1/refused", need: toRead, handle: listRefused, id: "refused", out: api.RefusedList{}, summary: "List the keys that were refused most, by limits and by bans",
			query: []parameter{
				{name: "n", about: "how many, up to 1000", example: "20"},
				{name: "span", about: "from 1s to 1h; 1m if it is left out", example: "1m"},
			},
		},
		{method: "GET", path: "/v1/hot", need: toRead, handle: listHot, id: "hot", out: api.HotList{}, summary: "List the keys that are hot"},
		{
			method: "GET", path: "/v1/rates", need: toRead, handle: listRates, id: "rates", out: api.RateList{}, summary: "What was decided in the last span, cut into parts",
			query: []parameter{
				{name: "span", about: "from 1s to 24h; 1m if it is left out", example: "1m"},
				{name: "points", about: "how many parts, up to 1440", example: "60"},
				{name: "rules", about: "1 for each rule's as well; points times rules is at most 8192 then", example: "1"},
			},
		},
		{method: "GET", path: "/v1/rules", need: toRead, handle: listRules, id: "rules", out: api.RuleSet{}, summary: "The rules in force"},
		{
			method: "POST", path: "/v1/rules/check", need: toAdmin, body: yamlBody, handle: checkRules, id: "checkRules", in: text(""), out: api.RulesValidation{},
			summary: "Say what is in a rules file, or what is wrong with it",
		},
		{
			method: "POST", path: "/v1/rules/reload", need: toAdmin, body: jsonBody, handle: reload, id: "reload", fails: []int{http.StatusConflict, http.StatusUnprocessableEntity}, in: api.ReloadRequest{}, out: api.RuleChanges{},
			summary: "Read the rules file again, and say what has changed; if it has mistakes, or would drop bans, the rules stay",
		},
		{method: "GET", path: "/v1/status", need: toRead, handle: about, id: "status", out: api.Status{}, summary: "What the server says of itself"},
		{
			method: "GET", path: "/v1/events", need: toRead, handle: subscribe, id: "events", fails: []int{http.StatusServiceUnavailable}, out: text(""), media: "text/event-stream",
			summary: "Be told of bans, unbans, hot keys and rule changes as they happen, and of rates every second",
		},
	}
}

// maxLogin is how many bytes those who have not logged in may send as a body.
const maxLogin = 4 << 10

// serverRoutes is what is about the server as such.
func serverRoutes() []route {
	const plain = "text/plain; charset=utf-8"
	return []route{
		{
			method: "POST", path: "/v1/login", need: everyone, body: jsonBody, most: maxLogin, handle: login, id: "login", in: api.LoginRequest{}, out: api.Session{},
			summary: "Begin a session of 12 hours with a token, for browsers",
		},
		{method: "POST", path: "/v1/logout", need: everyone, body: jsonBody, most: maxLogin, handle: logout, id: "logout", in: api.Nothing{}, out: api.Nothing{}, summary: "End the session"},
		{method: "GET", path: "/metrics", need: toRead, handle: scrape, id: "metrics", out: text(""), media: "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", summary: "Figures for Prometheus"},
		{method: "GET", path: "/openapi.json", need: toRead, handle: document, id: "openapi", out: anything{}, summary: "This document"},
		{method: "GET", path: "/healthz", need: everyone, handle: alive, id: "alive", out: text(""), media: plain, summary: "Say that the server is there"},
		{method: "GET", path: "/readyz", need: everyone, handle: ready, id: "ready", fails: []int{http.StatusServiceUnavailable}, out: text(""), media: plain, summary: "Say whether the server is ready: 200, or 503"},
		{method: "GET", path: "/", need: everyone, handle: index, id: "console", out: text(""), media: "text/html; charset=utf-8", summary: "The console"},
		{method: "GET", path: "/console/{name}", need: everyone, handle: consoleFile, id: "consoleFile", fails: []int{http.StatusNotFound}, out: text(""), media: "*/*", summary: "A file of the console"},
	}
}
