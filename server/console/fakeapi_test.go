package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/server/console"
)

// A fakeAPI answers as the server does, out of nothing: the console is what is
// tested. It keeps what it was told to do.
type fakeAPI struct {
	*httptest.Server
	began time.Time

	mu     sync.Mutex
	role   string
	token  string // asked for, if not ""
	away   bool   // every answer is 503
	broken string // why the rules file was not taken
	bans   []ban
	posts  []string // path and body of each POST
	feeds  map[chan string]bool
}

type (
	object map[string]any
	list   []any
)

type ban struct {
	Rule   string    `json:"rule"`
	Key    []string  `json:"key,omitempty"`
	Base64 [][]byte  `json:"key_base64,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Count  int       `json:"count"`
	Reason string    `json:"reason,omitempty"`
	Source string    `json:"source,omitempty"`
}

// Keys as strangers choose them.
var (
	imgKey  = `<img src=x onerror="window.owned=1">`
	bidiKey = "\u202egnp.exe\u2066\x1b[31m\u0000end"
	longKey = strings.Repeat("k<b>", 256)
	evil    = []string{imgKey, bidiKey, longKey, `"><script>window.owned=1</script>`, "javascript:window.owned=1", "=HYPERLINK(1)", "a&amp;b", "  two  spaces  ", "\u202e", "z̸̡̢̛̙̙a̶l̷g̸o̷"}
)

const rulesText = `version: 1

client: {ipv4: 32, ipv6: 64}

counters:
  requests: {key: client, spans: [1s, 1m, 1h, 24h]}
  pages: {key: path, spans: [1m, 1h]}

limits:
  - name: per-client
    key: client               # an address, IPv6 by its /64
    limit: [20 per 1s, 600 per 1m]
    ban: {after: 20 refusals in 5m, for: 10m, factor: 2, max: 24h}

  - name: login
    when: {method: POST, path: /login}
    key: [client, user]
    limit: 5 per 10m
    mode: shadow

bans:
  - name: scanner
    key: client
    when: {path: ["/wp-admin/**", "**.php"], status: 400-499}
    after: 10 hits in 1m
    for: 1d

hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 500 per 2s, hold: 60s}

allow: [10.0.0.0/8]
`

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{role: "admin", began: time.Now().Add(-53*time.Hour - 11*time.Minute), feeds: make(map[chan string]bool)}
	now := time.Now()
	add := func(rule string, key []string, since, length time.Duration, count int, reason, source string) {
		f.bans = append(f.bans, ban{Rule: rule, Key: key, Since: now.Add(-since), Until: now.Add(length - since), Count: count, Reason: reason, Source: source})
	}
	add("per-client", []string{"203.0.113.77"}, 9*time.Second, 10*time.Minute, 1, "", "rule")
	add("scanner", []string{"198.51.100.23"}, 41*time.Second, 24*time.Hour, 1, "", "rule")
	add("per-client", []string{"2001:db8:4:2::"}, 3*time.Minute, 20*time.Minute, 2, "", "rule")
	add("login", []string{"192.0.2.200", "ada"}, 11*time.Minute, time.Hour, 0, "credential stuffing, ticket 4711", "manual")
	add("scanner", []string{"198.51.100.90"}, 52*time.Minute, 24*time.Hour, 1, "", "rule")
	add("per-client", []string{"203.0.113.5"}, 2*time.Hour, 6*time.Hour, 5, "", "rule")
	t.Cleanup(func() { f.Close() })
	f.Server = httptest.NewServer(f)
	return f
}

// hostile adds bans of the keys of evil.
func (f *fakeAPI) hostile() {
	now := time.Now()
	for i, k := range evil {
		f.bans = append(f.bans, ban{Rule: "per-client", Key: []string{k}, Since: now.Add(-time.Duration(i) * time.Second), Until: now.Add(time.Hour), Count: 1, Reason: k[:min(len(k), 200)], Source: "rule"})
	}
	f.bans = append(f.bans, ban{Rule: "per-client", Base64: [][]byte{{0xff, 0xfe, '<', 'i', '>'}}, Since: now, Until: now.Add(time.Hour)})
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", console.Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/" {
		http.ServeFileFS(w, r, console.Files, "index.html")
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/console/"); ok {
		http.ServeFileFS(w, r, console.Files, name)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/")
	f.mu.Lock()
	away, token, role := f.away, f.token, f.role
	f.mu.Unlock()
	cookie, _ := r.Cookie("lately")
	switch {
	case away:
		problem(w, 503, "OVERLOAD", "The server is going down.")
	case !ok:
		problem(w, 404, "ERR", "There is no "+r.URL.Path+".")
	case path == "login":
		f.login(w, r, token)
	case token != "" && (cookie == nil || cookie.Value != token):
		problem(w, 401, "DENIED", "A token is needed.")
	case r.Method == http.MethodPost && role != "admin":
		problem(w, 403, "DENIED", "Your role is read; admin is needed.")
	case r.Method == http.MethodPost:
		f.post(w, r, path)
	case path == "events":
		f.events(w, r)
	default:
		f.get(w, r, path, role)
	}
}

func (f *fakeAPI) login(w http.ResponseWriter, r *http.Request, token string) {
	var in struct{ Token string }
	json.NewDecoder(r.Body).Decode(&in)
	if in.Token != token {
		problem(w, 401, "DENIED", "That is no token.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "lately", Value: token, HttpOnly: true, SameSite: http.SameSiteStrictMode, Path: "/"})
	answer(w, object{})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(object{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail, "code": code})
}

func (f *fakeAPI) post(w http.ResponseWriter, r *http.Request, path string) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts = append(f.posts, path+" "+string(body))
	var in struct {
		Rule, For, Reason string
		Key               []string
		Base64            [][]byte `json:"key_base64"`
	}
	json.Unmarshal(body, &in)
	switch path {
	case "bans":
		d, err := time.ParseDuration(in.For)
		if err != nil {
			problem(w, 400, "BADARG", err.Error())
			return
		}
		b := ban{Rule: in.Rule, Key: in.Key, Since: time.Now(), Until: time.Now().Add(d), Reason: in.Reason, Source: "manual"}
		f.bans = append([]ban{b}, f.bans...)
		w.WriteHeader(201)
		answer(w, b)
	case "bans/lift":
		for i, b := range f.bans {
			if b.Rule == in.Rule && fmt.Sprint(b.Key, b.Base64) == fmt.Sprint(in.Key, in.Base64) {
				f.bans = append(f.bans[:i:i], f.bans[i+1:]...)
				break
			}
		}
		answer(w, object{"lifted": true})
	case "rules/check":
		if strings.Contains(string(body), "limt:") {
			answer(w, object{"ok": false, "errors": list{object{"line": 12, "column": 5, "message": `"limt" is no key of a limit; allowed are name, key, limit, ban, when`}}})
			return
		}
		answer(w, object{"ok": true, "sentences": list{"per-client: a client may make 20 requests per 1s; the 21st within any 1s is refused."}, "warnings": list{}})
	case "rules/reload":
		if f.broken != "" {
			problem(w, 400, "ERR", f.broken)
			return
		}
		answer(w, object{"ok": true})
	default:
		answer(w, object{})
	}
}

func (f *fakeAPI) get(w http.ResponseWriter, r *http.Request, path, role string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	now := time.Now()
	switch path {
	case "status":
		var broken any
		if f.broken != "" {
			broken = f.broken
		}
		answer(w, object{
			"version": "v0.5.0", "started": f.began, "uptime_s": int(now.Sub(f.began).Seconds()), "event_time": false,
			"totals": f.totals(now), "memory": object{"budget": 256 << 20, "bytes": 91_400_000, "counter_bytes": 38_200_000, "heap": 151_000_000},
			"bans": object{"held": len(f.bans), "remembered": 1904, "refused": 0}, "subscribers": 3, "role": role,
			"rules": object{"file": "/etc/lately/rules.yaml", "since": now.Add(-26 * time.Minute), "reloads": 4, "error": broken},
		})
	case "rules":
		answer(w, f.book(now))
	case "rates":
		span, _ := time.ParseDuration(q.Get("span"))
		points, _ := strconv.Atoi(q.Get("points"))
		answer(w, object{"rates": rates(now, span, points, q.Get("rules") == "1")})
	case "bans":
		answer(w, f.search(q.Get("rule"), q.Get("q")))
	case "hot":
		answer(w, object{"hot": list{
			object{"rule": "product", "key": []string{"/product/4711"}, "since": now.Add(-95 * time.Second), "until": now.Add(48 * time.Second)},
			object{"rule": "product", "key": []string{"/product/<i>" + evil[0]}, "since": now.Add(-12 * time.Second), "until": now.Add(31 * time.Second)},
		}})
	case "counters":
		answer(w, object{"counters": list{
			object{"name": "requests", "fields": []string{"client"}, "spans_ms": []int{1000, 60_000, 3_600_000, 86_400_000}, "made": false, "sentence": "Requests are counted for each client over the last 1s, 1m, 1h and 24h.", "keys": 184_220, "bytes": 38_200_000},
			object{"name": "pages", "fields": []string{"path"}, "spans_ms": []int{60_000, 3_600_000}, "made": false, "sentence": "Requests are counted for each path over the last 1m and 1h.", "keys": 811, "bytes": 200_000},
		}})
	case "counters/requests/top", "counters/pages/top":
		answer(w, object{"top": top(q.Get("n"))})
	case "key":
		answer(w, f.key(q["field"], q["value"], now))
	default:
		problem(w, 404, "ERR", "There is no "+path+".")
	}
}

func (f *fakeAPI) totals(now time.Time) object {
	n := int(now.Sub(f.began).Seconds())
	return object{"allowed": n * 11_800, "refused": n * 640, "banned": n * 210, "errors": 0}
}

func (f *fakeAPI) book(now time.Time) object {
	var broken any
	if f.broken != "" {
		broken = f.broken
	}
	rule := func(name, kind, sentence string, shadow bool, fields ...string) object {
		return object{"name": name, "kind": kind, "fields": fields, "sentence": name + ": " + sentence, "shadow": shadow, "stats": object{"allowed": 1_210_400_000, "refused": 81_230_000, "shadow": 0, "skipped": 12, "banned": 40_000_000, "bans_started": 2210, "keys": 91_000, "bans": 4}}
	}
	hot := rule("product", "hot", "of the requests with path /product/*, a path that is hit 500 times within 2s is hot for 1m.", false, "path")
	hot["stats"] = nil
	return object{
		"file": "/etc/lately/rules.yaml", "text": rulesText, "since": now.Add(-26 * time.Minute), "error": broken, "allow": list{"10.0.0.0/8"},
		"rules": list{
			rule("per-client", "limit", "a client may make 20 requests per 1s and 600 requests per 1m; the 21st within any 1s and the 601st within any 1m are refused. More than 20 refusals in 5m ban it for 10m, each further ban twice as long, at most 24h.", false, "client"),
			rule("login", "limit", "of the requests with method POST and path /login, a combination of client and user may make 5 requests per 10m; the 6th within any 10m is refused. The rule is a shadow: it reports, and refuses nothing.", true, "client", "user"),
			rule("scanner", "ban", "of the requests with path /wp-admin/** or **.php and status 400-499, a client with more than 10 hits in 1m is banned for 24h.", false, "client"),
			hot,
		},
		"counters": list{object{"name": "requests", "fields": []string{"client"}, "sentence": "requests: Requests are counted for each client over the last 1s, 1m, 1h and 24h."}},
	}
}

// rates invents traffic: waves, and a flood now and then.
func rates(now time.Time, span time.Duration, points int, perRule bool) []object {
	var all []object
	end := now.Truncate(time.Second)
	width := span / time.Duration(max(1, points))
	for i := range points {
		to := end.Add(-time.Duration(points-1-i) * width)
		s := width.Seconds()
		allowed, limited, banned := traffic(to)
		r := object{"from": to.Add(-width), "to": to, "all": object{"allowed": int(allowed * s), "refused": int((limited + banned) * s), "banned": int(banned * s), "errors": 0}}
		if perRule {
			of := func(allowed, refused, shadow float64) object {
				return object{"allowed": int(allowed * s), "refused": int(refused * s), "shadow": int(shadow * s), "banned": 0, "bans": 0}
			}
			r["rules"] = object{"per-client": of(allowed, limited*0.82+banned*0.7, 0), "scanner": of(allowed*0.1, limited*0.18+banned*0.3, 0), "login": of(41, 0, 6+5*math.Sin(float64(to.Unix())/7)), "product": of(0, 0, 0)}
		}
		all = append(all, r)
	}
	return all
}

func traffic(t time.Time) (allowed, limited, banned float64) {
	x := float64(t.Unix() % 100_000)
	noise := math.Abs(math.Sin(x*12.9898)*43758.5453 - math.Floor(math.Sin(x*12.9898)*43758.5453))
	flood := math.Exp(-math.Pow(math.Mod(x, 47)-30, 2) / 22)
	return 10_400 + 1900*math.Sin(x/19) + 900*noise, 240 + 160*noise + 2600*flood, 120 + 1500*math.Exp(-math.Pow(math.Mod(x, 47)-36, 2)/30)
}

func (f *fakeAPI) search(rule, q string) object {
	found := []ban{}
	for _, b := range f.bans {
		if (rule == "" || b.Rule == rule) && (q == "" || strings.Contains(strings.Join(b.Key, " ")+b.Reason, q)) {
			found = append(found, b)
		}
	}
	return object{"bans": found, "total": len(found)}
}

func top(n string) list {
	out := list{}
	most, _ := strconv.Atoi(n)
	for i := range min(most, 24) {
		k := fmt.Sprintf("203.0.113.%d", 200-7*i)
		if i > 2 && i-3 < len(evil) && i%2 == 1 {
			k = evil[(i-3)/2]
		}
		lo := int(61_000 / math.Pow(float64(i+1), 0.8))
		out = append(out, object{"key": []string{k}, "lo": lo, "hi": lo + lo/9})
	}
	return out
}

func (f *fakeAPI) key(fields, values []string, now time.Time) object {
	windows := list{}
	if len(fields) == 1 {
		for _, span := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
			slots := list{}
			lo, oldest := 0, 0
			for i := range 11 { // the oldest is in hi only, as the server has it
				start := now.Truncate(span / 10).Add(-time.Duration(10-i) * span / 10)
				n := int(span.Seconds() * (8 + 6*math.Sin(float64(i)*1.3)) / 10)
				if i == 0 {
					oldest = n
					continue
				}
				lo += n
				slots = append(slots, object{"start": start, "count": n})
			}
			windows = append(windows, object{"counter": "requests", "span_ms": span.Milliseconds(), "lo": lo, "hi": lo + oldest, "slots": slots})
		}
	}
	var held []ban
	for _, b := range f.bans {
		if strings.Join(b.Key, "\t") == strings.Join(values, "\t") {
			held = append(held, b)
		}
	}
	until := 0
	if len(held) > 0 {
		until = int(held[0].Until.UnixMilli())
	}
	return object{
		"fields": fields, "key": values, "counters": windows, "bans": held,
		"rules": list{
			object{"rule": "per-client", "decision": object{"allowed": until == 0, "limit": 600, "remaining": 188, "retry_after_ms": 0, "reset_after_ms": 41_200, "rule": "per-client", "banned_until_ms": until}},
			object{"rule": "scanner", "decision": object{"allowed": true, "limit": 10, "remaining": 10, "retry_after_ms": 0, "reset_after_ms": 0, "rule": "scanner", "banned_until_ms": 0}},
		},
	}
}

// events is the stream: what tell is given, as long as the reader is there.
func (f *fakeAPI) events(w http.ResponseWriter, r *http.Request) {
	feed := make(chan string, 64)
	f.mu.Lock()
	f.feeds[feed] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.feeds, feed)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": hello\n\n")
	w.(http.Flusher).Flush()
	for {
		select {
		case e, ok := <-feed:
			if !ok {
				return
			}
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends an event to all who listen.
func (f *fakeAPI) tell(kind string, data any) {
	b, _ := json.Marshal(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	for feed := range f.feeds {
		feed <- "event: " + kind + "\ndata: " + string(b) + "\n\n"
	}
}

// second tells the rates of a second.
func (f *fakeAPI) second(allowed, refused, banned int) {
	f.tell("rates", object{"all": object{"allowed": allowed, "refused": refused, "banned": banned, "errors": 0}, "totals": f.totals(time.Now())})
}

// set changes f while it answers.
func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// cut ends all streams.
func (f *fakeAPI) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for feed := range f.feeds {
		close(feed)
		delete(f.feeds, feed)
	}
}

// posted returns the bodies posted to a path.
func (f *fakeAPI) posted(path string) (bodies []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.posts {
		if at, body, _ := strings.Cut(p, " "); at == path {
			bodies = append(bodies, body)
		}
	}
	return bodies
}
