package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/console"
)

// A fakeAPI answers as the server does, from fixed data: the tests are about the console. It keeps the commands that it
// received.
type fakeAPI struct {
	*httptest.Server
	began time.Time

	mu       sync.Mutex
	role     string
	resp     string // where its RESP listener listens
	token    string // asked for, if not ""
	away     bool   // every answer is 503
	short    bool   // every list of bans is cut off
	drops    bool   // a reload would drop bans
	broken   string // why the rules file was not taken
	disk     string // why the ban journal cannot be written
	alone    bool   // it follows no log and enforces nothing
	empty    bool   // it has no rules and has counted nothing
	bans     []ban
	hot      []object
	ignored  []object
	posts    []string  // path and body of each POST
	searched []string  // patterns and networks of top keys
	hold     chan bool // if not nil, a list of bans or top keys waits for it
	feeds    map[chan string]bool
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

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{role: "admin", resp: "127.0.0.1:7399", began: time.Now().Add(-53*time.Hour - 11*time.Minute), feeds: make(map[chan string]bool)}
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
	f.hot, f.ignored = hotKeys(now), []object{}
	t.Cleanup(func() { f.Close() })
	f.Server = httptest.NewServer(f)
	return f
}

// clear makes it a server that has just started without rules.
func (f *fakeAPI) clear() {
	f.began, f.alone, f.empty, f.bans, f.hot = time.Now(), true, true, nil, nil
}

// hostile adds bans of the keys of evil.
func (f *fakeAPI) hostile() {
	now := time.Now()
	for i, k := range evil {
		f.bans = append(f.bans, ban{Rule: "per-client", Key: []string{k}, Since: now.Add(-time.Duration(i) * time.Second), Until: now.Add(time.Hour), Count: 1, Reason: k[:min(len(k), 200)], Source: "rule"})
	}
	f.bans = append(f.bans, ban{Rule: "per-client", Key: []string{"\ufffd<i>"}, Base64: [][]byte{{0xff, 0xfe, '<', 'i', '>'}}, Since: now, Until: now.Add(time.Hour)})
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
		problem(w, 401, "NOAUTH", "A token is needed.")
	case r.Method == http.MethodPost && role != "admin":
		problem(w, 403, "NOPERM", "Your role is read; admin is needed.")
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
		problem(w, 401, "WRONGPASS", "That is no token.")
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
		Off               bool
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
	case "bans/unban":
		n := len(f.bans)
		f.bans = slices.DeleteFunc(f.bans, func(b ban) bool {
			switch {
			case in.Base64 != nil:
				return b.Rule == in.Rule && slices.EqualFunc(b.Base64, in.Base64, bytes.Equal)
			case in.Key != nil:
				return b.Rule == in.Rule && slices.Equal(b.Key, in.Key)
			}
			return in.Rule == "" || b.Rule == in.Rule
		})
		answer(w, object{"unbanned": n - len(f.bans)})
	case "hot":
		f.hot = append([]object{{"rule": in.Rule, "key": in.Key, "since": time.Now(), "until": time.Now().Add(time.Minute), "lo": 0, "hand": true}}, f.hot...)
		w.WriteHeader(201)
		answer(w, f.hot[0])
	case "hot/remove", "hot/ignore":
		n := len(f.hot)
		f.hot = slices.DeleteFunc(f.hot, func(k object) bool { return slices.Equal(k["key"].([]string), in.Key) })
		if path == "hot/remove" {
			answer(w, object{"removed": len(f.hot) < n})
			return
		}
		f.ignored = slices.DeleteFunc(f.ignored, func(k object) bool { return slices.Equal(k["key"].([]string), in.Key) })
		if !in.Off {
			f.ignored = append(f.ignored, object{"key": in.Key})
		}
		answer(w, object{})
	case "rules/check":
		if strings.Contains(string(body), "limt:") {
			answer(w, object{"ok": false, "errors": list{object{"line": 12, "column": 5, "message": `key "limt": unknown: must be one of name, key, limit, ban, when`}}})
			return
		}
		answer(w, object{"ok": true, "sentences": list{"per-client: a client may make 20 requests per 1s; the 21st within any 1s is refused."}, "warnings": list{}})
	case "rules/try":
		f.trial(w, string(body))
	case "rules/reload":
		if f.drops && !strings.Contains(string(body), `"drop_bans":true`) {
			problem(w, 409, "CONFLICT", "the new rules would drop 3 bans")
			return
		}
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
	hold, short := f.hold, f.short
	f.mu.Unlock()
	if hold != nil && (path == "bans" || strings.HasSuffix(path, "/top")) {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if path == "bans" && short {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"bans":[`)
		return
	}
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
		var disk any
		if f.disk != "" {
			disk = f.disk
		}
		enforcement, logs := around(now)
		if f.alone {
			enforcement, logs = nil, nil
		}
		answer(w, object{
			"enforcement": enforcement, "logs": logs,
			"storage": object{"journal_error": disk, "journal_failures": 0, "snapshot_error": nil, "snapshot_failures": 0, "missing_bans": 0},
			"version": "v0.5.0", "resp": f.resp, "started": f.began, "uptime_s": int(now.Sub(f.began).Seconds()),
			"totals": f.totals(now), "memory": object{"budget": 256 << 20, "bytes": 91_400_000, "counter_bytes": 38_200_000, "heap": 151_000_000},
			"bans": object{"held": len(f.bans), "remembered": 1904, "refused": 0}, "subscribers": 3, "role": role,
			"rules": object{"file": "/etc/lately/rules.yaml", "since": now.Add(-26 * time.Minute), "reloads": 4, "error": broken},
		})
	case "rules":
		if f.empty {
			answer(w, object{"file": "no rules", "text": "", "since": f.began, "rules": list{}, "counters": list{}})
			return
		}
		answer(w, f.book(now))
	case "rates":
		span, _ := time.ParseDuration(q.Get("span"))
		points, _ := strconv.Atoi(q.Get("points"))
		answer(w, object{"rates": rates(now, span, points, q.Get("rules") == "1"), "marks": list{
			object{"time": now.Add(-20 * time.Minute), "type": "start"},
			object{"time": now.Add(-25 * time.Second), "type": "reload"},
			object{"time": now.Add(-14 * time.Second), "type": "ban", "bans": 3},
			object{"time": now.Add(-5 * time.Second), "type": "unban", "bans": 1},
		}})
	case "bans":
		answer(w, f.search(q.Get("rule"), q.Get("q")))
	case "refused":
		answer(w, f.refused())
	case "hot":
		answer(w, object{"hot": f.hot})
	case "hot/stats":
		answer(w, object{"rules": list{object{
			"rule": "product", "threshold": 500, "span_ms": 2000, "hot": len(f.hot), "ignored_keys": f.ignored,
			"saved": list{
				object{"span_ms": 60_000, "hits": 716_000, "misses": 31_000, "loads": 410, "stale": 12, "share": 0.958},
				object{"span_ms": 3_600_000, "hits": 31_716_000, "misses": 3_231_000, "loads": 24_410, "stale": 612, "share": 0.907},
				object{"span_ms": 86_400_000, "hits": 390_716_000, "misses": 88_231_000, "loads": 310_410, "stale": 5612, "share": 0.815},
			},
		}}})
	case "counters":
		if f.empty {
			answer(w, object{"counters": list{}})
			return
		}
		answer(w, object{"counters": list{
			object{"name": "requests", "fields": []string{"client"}, "spans_ms": []int{1000, 60_000, 3_600_000, 86_400_000}, "dynamic": false, "sentence": "Requests are counted for each client over the last 1s, 1m, 1h and 24h.", "keys": 184_220, "bytes": 38_200_000},
			object{"name": "pages", "fields": []string{"path"}, "spans_ms": []int{60_000, 3_600_000}, "dynamic": false, "sentence": "Requests are counted for each path over the last 1m and 1h.", "keys": 811, "bytes": 200_000},
		}})
	case "counters/requests/top":
		f.searched = append(f.searched, q.Get("pattern")+q.Get("network"))
		if q.Get("pattern") != "" || q.Get("network") != "" {
			answer(w, object{"top": list{object{"key": []string{"203.0.113.200"}, "lo": 7, "hi": 9}}})
			return
		}
		answer(w, object{"top": top(q.Get("n"))})
	case "counters/pages/top":
		answer(w, object{"top": list{object{"key": []string{"/search"}, "lo": 400, "hi": 410}}})
	case "explain":
		answer(w, explanation(q["key"], now))
	case "key":
		answer(w, f.key(q["field"], q["value"], now))
	default:
		problem(w, 404, "ERR", "There is no "+path+".")
	}
}

// events is the stream: it sends what tell is given, until the reader ends. A page that receives nothing for 6 s considers
// its server lost, and a test may take longer: so there is an event a second, as from a real server; only the view of hot
// keys uses it.
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
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			io.WriteString(w, "event: hot\ndata: {}\n\n")
			w.(http.Flusher).Flush()
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

// tell sends an event to all listeners.
func (f *fakeAPI) tell(kind string, data any) {
	b, _ := json.Marshal(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	for feed := range f.feeds {
		feed <- "event: " + kind + "\ndata: " + string(b) + "\n\n"
	}
}

// second sends the rates of a second.
func (f *fakeAPI) second(allowed, refused, banned, unmatched int) {
	f.tell("rates", object{"all": object{"allowed": allowed, "refused": refused, "banned": banned, "unmatched": unmatched, "errors": 0}, "totals": f.totals(time.Now())})
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
