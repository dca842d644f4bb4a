//go:build linux

package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// spareKey returns a key of calls whose effect is not judged.
func spareKey(r *rand.Rand) string { return fmt.Sprint("spare-", r.IntN(20)) }

// commands returns a call for each command of the program, or several that belong together.
var commands = map[string]func(r *rand.Rand) [][]string{
	"check":        one("CHECK", "agent", "KEY", "path", "/spare", "COST", "2", "OUTCOME", "60000"),
	"outcome":      one("OUTCOME", "agent", "KEY", "path", "/spare", "status", "401"),
	"take":         one("TAKE", spare, "KEY"),
	"peek":         one("PEEK", spare, "KEY"),
	"charge":       one("CHARGE", spare, "KEY"),
	"reserve":      one("RESERVE", spare, "KEY", "FOR", "1000"),
	"settle":       one("SETTLE", "nosuch", "COST", "1"),
	"refund":       one("REFUND", spare, "KEY"),
	"release":      one("RELEASE", "spare-places", "KEY"),
	"cl.throttle":  one("CL.THROTTLE", "KEY", "5", "10", "1"),
	"del":          one("DEL", "KEY"),
	"reset":        one("RESET", spare, "KEY"),
	"add":          one("ADD", "spare-counter", "KEY", "3"),
	"sum":          one("SUM", "spare-counter", "KEY"),
	"rate":         one("RATE", "spare-counter", "KEY", "SPAN", "1s"),
	"top":          one("TOP", "spare-counter", "5"),
	"ban":          one("BAN", "spare-ban", "KEY", "1s", "spare"),
	"unban":        one("UNBAN", "spare-ban", "KEY"),
	"unbanall":     one("UNBANALL", "RULE", "spare-ban", "PATTERN", "spare-1*"),
	"bans":         one("BANS", "COUNT", "10"),
	"hot.report":   one("HOT.REPORT", "page", "/KEY", "5", "10"),
	"hot.changed":  one("HOT.CHANGED", "page", "/KEY"),
	"hot.cache":    one("HOT.CACHE", "page", "1", "2", "3", "4"),
	"hot.stats":    one("HOT.STATS"),
	"hot.watch":    one("HOT.WATCH"),
	"hot.list":     one("HOT.LIST"),
	"rules":        one("RULES"),
	"subscribe":    one("SUBSCRIBE", "bans"),
	"psubscribe":   one("PSUBSCRIBE", "hot*"),
	"unsubscribe":  one("UNSUBSCRIBE", "bans"),
	"punsubscribe": one("PUNSUBSCRIBE", "hot*"),
	"multi":        transaction("EXEC"),
	"exec":         transaction("EXEC"),
	"discard":      transaction("DISCARD"),
	"hello":        one("HELLO", "2"),
	"auth":         one("AUTH", strings.Repeat("wrong", 7)),
	"ping":         one("PING", "KEY"),
	"quit":         one("QUIT"),
	"echo":         one("ECHO", "KEY"),
	"select":       one("SELECT", "0"),
	"client":       one("CLIENT", "ID"),
	"command":      one("COMMAND", "DOCS"),
	"info":         one("INFO"),
	"config":       one("CONFIG", "GET", "*"),
}

// one returns a command in which KEY stands for a spare key.
func one(args ...string) func(*rand.Rand) [][]string {
	return func(r *rand.Rand) [][]string {
		out := slices.Clone(args)
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], "KEY", spareKey(r))
		}
		return [][]string{out}
	}
}

// queued are commands of transactions.
var queued = []func(*rand.Rand) [][]string{
	one("TAKE", spare, "KEY"), one("CHECK", "agent", "KEY"), one("OUTCOME", "agent", "KEY", "status", "404"), one("OUTCOME", "nosuch", "status", "404"), one("ADD", "spare-counter", "KEY"), one("SUM", "spare-counter", "KEY"),
	one("BAN", "spare-ban", "KEY", "1s"), one("UNBAN", "spare-ban", "KEY"), one("PEEK", spare, "KEY"), one("RESET", spare, "KEY"),
}

// transaction returns a transaction of other commands.
func transaction(end string) func(*rand.Rand) [][]string {
	return func(r *rand.Rand) [][]string {
		all := [][]string{{"MULTI"}}
		for range 1 + r.IntN(4) {
			all = append(all, pick(r, queued...)(r)...)
		}
		return append(all, []string{end})
	}
}

// A route is a request.
type route struct{ path, body string }

// routes returns for each route of the program a request, in which KEY stands for a spare key.
var routes = map[string]route{
	"GET /":                        {},
	"GET /console/{name}":          {path: "/console/console.js"},
	"GET /healthz":                 {},
	"GET /metrics":                 {},
	"GET /openapi.json":            {},
	"GET /readyz":                  {},
	"GET /v1/auth":                 {path: "/v1/auth"},
	"POST /v1/auth":                {path: "/v1/auth"},
	"GET /v1/bans":                 {path: "/v1/bans?limit=10"},
	"POST /v1/bans":                {body: `{"rule":"spare-ban","key":["KEY"],"for":"1s"}`},
	"POST /v1/bans/unban":          {body: `{"rule":"spare-ban","key":["KEY"]}`},
	"POST /v1/charge":              {body: `{"charges":[{"rule":"spare","key":["KEY"]}]}`},
	"POST /v1/reserve":             {body: `{"takes":[{"rule":"spare","key":["KEY"],"for_ms":1000}]}`},
	"POST /v1/settle":              {body: `{"id":"nosuch","cost":1}`},
	"GET /v1/auth-outcome":         {path: "/v1/auth-outcome?status=401"},
	"POST /v1/auth-outcome":        {path: "/v1/auth-outcome?status=401"},
	"POST /v1/outcome":             {body: `{"events":[{"event":{"agent":"KEY","status":"401"}},{"event":{"agent":"KEY","path":"/spare","status":"200"}},{"id":"nosuch","event":{"status":"401"}}]}`},
	"POST /v1/check":               {body: `{"events":[{"event":{"agent":"KEY"},"outcome_ms":1000},{"event":{"agent":"KEY","path":"/spare"}}]}`},
	"GET /v1/counters":             {},
	"POST /v1/counters/{name}/add": {path: "/v1/counters/spare-counter/add", body: `{"key":["KEY"]}`},
	"GET /v1/counters/{name}/rate": {path: "/v1/counters/spare-counter/rate?key=KEY"},
	"GET /v1/counters/{name}/sum":  {path: "/v1/counters/spare-counter/sum?key=KEY"},
	"GET /v1/counters/{name}/top":  {path: "/v1/counters/spare-counter/top?n=3"},
	"GET /v1/decisions":            {},
	"GET /v1/decisions/stream":     {path: "/v1/decisions/stream?startup=true"},
	"GET /v1/events":               {},
	"GET /v1/explain":              {path: "/v1/explain?key=KEY"},
	"POST /v1/demo/stop":           {body: `{}`},
	"POST /v1/feeds/events":        {body: `{"feed":"spare","session":"none","number":1}`},
	"POST /v1/feeds/open":          {body: `{"feed":"spare","process":"KEY"}`},
	"GET /v1/hot":                  {},
	"POST /v1/hot":                 {body: `{"rule":"page","key":["/KEY"],"ttl_ms":100}`},
	"POST /v1/hot/cache":           {body: `{"rule":"page","hits":1,"misses":1,"loads":1,"stale":0}`},
	"POST /v1/hot/changed":         {body: `{"rule":"page","key":["/KEY"]}`},
	"POST /v1/hot/ignore":          {body: `{"rule":"page","key":["/KEY"],"off":true}`},
	"POST /v1/hot/remove":          {body: `{"rule":"page","key":["/KEY"]}`},
	"POST /v1/hot/report":          {body: `{"rule":"page","records":[{"key":["/KEY"],"count":30}]}`},
	"GET /v1/hot/stats":            {},
	"GET /v1/hot/watch":            {},
	"GET /v1/key":                  {path: "/v1/key?field=agent&value=KEY"},
	"POST /v1/login":               {body: `{"token":"wrongwrongwrongwrongwrongwrongwrong"}`},
	"POST /v1/logout":              {body: `{}`},
	"POST /v1/peek":                {body: `{"rule":"spare","key":["KEY"]}`},
	"GET /v1/rates":                {path: "/v1/rates?span=1m&points=10"},
	"POST /v1/refund":              {body: `{"rule":"spare","key":["KEY"]}`},
	"GET /v1/refused":              {path: "/v1/refused?n=5"},
	"POST /v1/release":             {body: `{"rule":"spare-places","key":["KEY"]}`},
	"POST /v1/reset":               {body: `{"rule":"spare","key":["KEY"]}`},
	"GET /v1/rules":                {},
	"POST /v1/rules/check":         {body: "version: 1\nlimits: [{name: a, key: client, limit: 1 per 1s}]\n"},
	"POST /v1/rules/reload":        {body: `{}`},
	"POST /v1/rules/try":           {body: `{"rules":"version: 1\n"}`},
	"GET /v1/status":               {},
	"POST /v1/take":                {body: `{"takes":[{"rule":"spare","key":["KEY"]},{"rule":"spare-places","key":["KEY"]}]}`},
	"POST /v1/throttle":            {body: `{"key":"KEY","burst":5,"count":10,"period_ms":1000}`},
}

// programs returns the commands and routes that a server has by its own tables and that are in the tables above. It is a
// finding if others are missing there: they have no traffic.
func (r *run) programs() (names, paths []string) {
	s := r.servers[0]
	c, err := s.dial()
	if err != nil {
		r.fail("verbs", err.Error(), nil)
		return nil, nil
	}
	defer c.Close()
	values, err := c.do("COMMAND", "LIST")
	if err != nil {
		r.fail("verbs", err.Error(), nil)
		return nil, nil
	}
	for _, v := range values[1:] {
		if name := string(v.Text); commands[name] != nil {
			names = append(names, name)
		} else {
			r.unknown = append(r.unknown, name)
		}
	}
	_, text, err := s.get("/openapi.json")
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &document)
	}
	if err != nil {
		r.fail("verbs", err.Error(), nil)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			if method == "parameters" {
				continue
			}
			if name := strings.ToUpper(method) + " " + path; has(routes, name) {
				paths = append(paths, name)
			} else {
				r.unknown = append(r.unknown, name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(paths)
	return names, paths
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// everyVerb sends each command and request that the program has. Only that they are answered is judged.
func (r *run) everyVerb(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		s := r.servers[random.IntN(len(r.servers))]
		if random.IntN(2) == 0 {
			r.anyRoute(s, random)
		} else if c, err := s.dial(); err == nil {
			for range 10 {
				if ctx.Err() != nil || !r.anyCommand(s, c, random) {
					break
				}
			}
			c.Close()
		}
		time.Sleep(time.Duration(1+random.IntN(20)) * time.Millisecond)
	}
}

// anyCommand sends a command, and reports whether the connection can be used for others.
func (r *run) anyCommand(s *server, c *conn, random *rand.Rand) bool {
	name := r.names[random.IntN(len(r.names))]
	call := Call{Verb: strings.ToUpper(name), Server: s.index, Life: s.alive(), By: "RESP", Start: r.now()}
	all := commands[name](random)
	for _, args := range all {
		c.queue(args...)
	}
	err := c.send()
	for range all {
		if broken(err) {
			break
		}
		_, err = c.next()
	}
	if call.End = r.now(); err != nil {
		call.Text = err.Error()
	}
	call.Verb += " (any)"
	r.history.add(call)
	return !broken(err) && !slices.Contains([]string{"subscribe", "psubscribe", "unsubscribe", "punsubscribe", "hot.watch", "quit", "auth"}, name)
}

// anyRoute makes a request.
func (r *run) anyRoute(s *server, random *rand.Rand) {
	name := r.paths[random.IntN(len(r.paths))]
	method, path, _ := strings.Cut(name, " ")
	of := routes[name]
	if of.path != "" {
		path = of.path
	}
	key := spareKey(random)
	path, body := strings.ReplaceAll(path, "KEY", key), strings.ReplaceAll(of.body, "KEY", key)
	call := Call{Verb: name + " (any)", Server: s.index, Life: s.alive(), By: "HTTP", Start: r.now()}
	if slices.Contains([]string{"/v1/events", "/v1/hot/watch"}, path) {
		r.readStream(s, path)
		return
	}
	contentType := ""
	if body != "" {
		contentType = "application/json"
	}
	if path == "/v1/rules/check" {
		contentType = "application/yaml"
	}
	code, text, err := s.request(method, path, contentType, []byte(body))
	if call.End = r.now(); err != nil {
		call.Text = err.Error()
	}
	r.history.add(call)
	r.history.mu.Lock()
	full := len(r.history.overlapping(s.index, call.Start, call.End, fullDisk, fewDescriptors)) > 0 // a ban and a reload report that by 500
	r.history.mu.Unlock()
	if err == nil && code >= http.StatusInternalServerError && code != http.StatusServiceUnavailable && !full {
		r.fail("answers", fmt.Sprintf("%s is answered by %d: %s", name, code, text), nil)
	}
}

// readStream reads a stream for a short time.
func (r *run) readStream(s *server, path string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(path), nil)
	if err != nil {
		return
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if w, err := s.client.Do(req); err == nil {
		buffer := make([]byte, 4096)
		for err == nil {
			_, err = w.Body.Read(buffer)
		}
		w.Body.Close()
	}
}
