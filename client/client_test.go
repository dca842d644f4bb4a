package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("LATELY_FLEET_PROCESS"); role != "" { // see TestFleetOfProcesses
		if err := beProcess(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		addr   string
		config Config
		want   string // of the error, or the address
	}{
		{"127.0.0.1:7380", Config{Token: "t"}, "http://127.0.0.1:7380"},
		{"http://localhost:7380/", Config{Token: "t"}, "http://localhost:7380"},
		{"http://[::1]:7380/lately/", Config{Token: "t"}, "http://[::1]:7380/lately"},
		{"https://lately.example.org", Config{Token: "t"}, "https://lately.example.org"},
		{"http://lately.example.org", Config{}, "http://lately.example.org"},
		{"http://lately.example.org", Config{Token: "t", Insecure: true}, "http://lately.example.org"},
		{"http://lately.example.org", Config{Token: "t"}, "Config.Token: it would be sent to lately.example.org without encryption: must be an https address"},
		{"http://127.0.0.1.example.org", Config{Token: "t"}, "without encryption"},
		{"", Config{}, `address: "": must be http://HOST:PORT`},
		{"ftp://127.0.0.1", Config{}, "must be http://HOST:PORT"},
		{"http://u:p@127.0.0.1", Config{}, "without user"},
		{"http://127.0.0.1?x", Config{}, "without user, query"},
		{"127.0.0.1", Config{Timeout: -1}, "Config.Timeout: -1ns: must be 0 (10s) or more"},
		{"127.0.0.1", Config{Token: "a b"}, "Config.Token: a blank"},
		{"127.0.0.1", Config{Token: "a\r\nX: y"}, "Config.Token: a blank"},
		{"127.0.0.1", Config{TLS: &tls.Config{}, HTTPClient: &http.Client{}}, "Config.TLS and Config.HTTPClient: both set"},
	} {
		c, err := New(tt.addr, tt.config)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = c.Addr()
		}
		if (err != nil) == strings.HasPrefix(tt.want, "http") || !strings.Contains(got, tt.want) {
			t.Errorf("New(%q, %+v): %q, want %q", tt.addr, tt.config, got, tt.want)
		}
	}
}

// A wish is one request to the fake server.
type wish struct {
	Method, URI, Body string
	Header            http.Header
}

// fake returns a client of a server that gives one answer, and the requests to
// it.
func fake(t *testing.T, status int, media, answer string) (*Client, *wish) {
	t.Helper()
	var asked wish
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = wish{r.Method, r.RequestURI, string(body), r.Header}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	c := must.Get(New(s.URL, Config{Token: "secret", Timeout: time.Minute}))(t)
	t.Cleanup(func() { c.Close(); s.Close() })
	return c, &asked
}

// TestCalls has one call of each kind with the wire's form of it, both ways.
func TestCalls(t *testing.T) {
	ctx := t.Context()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ban := api.Ban{Rule: "login", Key: api.KeyOf("a\xffb", "c"), Since: at, Until: at.Add(time.Minute), Count: 2, Reason: "why", Source: "rule"}
	const banText = `{"rule":"login","key_base64":["Yf9i","Yw=="],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z","count":2,"reason":"why","source":"rule","new":1}`
	const delayedText = `{"allowed":true,"limit":3,"remaining":1,"retry_after_ms":0,"reset_after_ms":2000,"rule":"queue","banned_until_ms":0,"delay_ms":1000}`
	const decisionText = `{"allowed":false,"limit":60,"remaining":0,"retry_after_ms":1500,"reset_after_ms":60000,"rule":"r","banned_until_ms":1700000000001}`
	refused := ratelimit.Decision{
		Rule: "r", Limit: 60, RetryAfter: 1500 * time.Millisecond, ResetAfter: time.Minute, BannedUntil: time.UnixMilli(1700000000001),
	}
	type result = []any
	for _, tt := range []struct {
		name, answer, method, uri, body string
		call                            func(*Client) (any, error)
		want                            any
	}{
		{
			"check", decisionText, "POST", "/v1/check", `{"event":{"client":"192.0.2.1"},"cost":1}`,
			func(c *Client) (any, error) { return c.Check(ctx, map[string]string{"client": "192.0.2.1"}, 0) },
			refused,
		},
		{
			"outcomes", `{"decisions":[` + decisionText + `,{"error":{"code":"BADID","detail":"id: "}}]}`, "POST", "/v1/outcome",
			`{"events":[{"event":{"client":"192.0.2.1","status":"401"}},{"id":"AbC-_","event":{"size":"7"},"cost":2}]}`,
			func(c *Client) (any, error) {
				all, err := c.Outcome(ctx,
					api.OutcomeItem{Event: map[string]string{"client": "192.0.2.1", "status": "401"}},
					api.OutcomeItem{ID: "AbC-_", Event: map[string]string{"size": "7"}, Cost: new(uint64(2))})
				return result{len(all), all[0].Rule, all[1].Error.Code}, err
			},
			result{2, refused.Rule, api.BadID},
		},
		{
			"check for an id", strings.Replace(delayedText, "}", `,"id":"AbC-_"}`, 1), "POST", "/v1/check", `{"event":{"client":"192.0.2.1"},"cost":1,"outcome_ms":600000}`,
			func(c *Client) (any, error) {
				d, id, err := c.CheckID(ctx, map[string]string{"client": "192.0.2.1"}, 0, 0)
				return result{d.Allowed, id}, err
			},
			result{true, "AbC-_"},
		},
		{
			"reserve by a limit", strings.Replace(delayedText, "}", `,"id":"AbC-_"}`, 1), "POST", "/v1/reserve", `{"rule":"queue","key":["ada"],"cost":1,"limit":600,"for_ms":1000}`,
			func(c *Client) (any, error) {
				r, err := c.ReserveLimit(ctx, "queue", 600, 0, time.Second, "ada")
				return result{r.ID}, err
			},
			result{"AbC-_"},
		},
		{
			"peek at an event", decisionText, "POST", "/v1/peek", `{"event":{},"cost":3}`,
			func(c *Client) (any, error) { return c.PeekEvent(ctx, nil, 3) },
			refused,
		},
		{
			"take", `{"allowed":false,"limit":1,"retry_after_ms":-1,"reset_after_ms":9223372036854775807,"rule":"r"}`,
			"POST", "/v1/take", `{"rule":"login","key_base64":["Yf8=","Yg=="],"cost":2}`,
			func(c *Client) (any, error) { return c.Take(ctx, "login", 2, "a\xff", "b") },
			ratelimit.Decision{Rule: "r", Limit: 1, RetryAfter: ratelimit.Never, ResetAfter: 9223372036854 * time.Millisecond},
		},
		{
			"peek", `{"allowed":true,"rule":""}`, "POST", "/v1/peek", `{"rule":"login","key":["ada"],"cost":1}`,
			func(c *Client) (any, error) { return c.Peek(ctx, "login", 1, "ada") },
			ratelimit.Decision{Allowed: true},
		},
		{
			"take by a limit", `{"allowed":true,"limit":600,"remaining":599,"rule":"plan"}`, "POST", "/v1/take", `{"rule":"plan","key":["acme"],"cost":2,"limit":600}`,
			func(c *Client) (any, error) { return c.TakeLimit(ctx, "plan", 600, 2, "acme") },
			ratelimit.Decision{Allowed: true, Rule: "plan", Limit: 600, Remaining: 599},
		},
		{
			"take by the limit of the rule", `{"allowed":true,"rule":"plan"}`, "POST", "/v1/take", `{"rule":"plan","key":["acme"],"cost":2}`,
			func(c *Client) (any, error) { return c.TakeLimit(ctx, "plan", 0, 2, "acme") },
			ratelimit.Decision{Allowed: true, Rule: "plan"},
		},
		{
			"take with a delay", delayedText, "POST", "/v1/take", `{"rule":"queue","key":["ada"],"cost":1}`,
			func(c *Client) (any, error) { return c.Take(ctx, "queue", 1, "ada") },
			ratelimit.Decision{Allowed: true, Rule: "queue", Limit: 3, Remaining: 1, ResetAfter: 2 * time.Second, Delay: time.Second},
		},
		{
			"release", `{"released":1}`, "POST", "/v1/release", `{"rule":"uploads","key":["ada"],"n":1}`,
			func(c *Client) (any, error) { return c.Release(ctx, "uploads", 1, "ada") },
			uint64(1),
		},
		{
			"reserve", strings.Replace(delayedText, "}", `,"id":"AbC-_"}`, 1), "POST", "/v1/reserve", `{"rule":"queue","key":["ada"],"cost":2000,"for_ms":1500}`,
			func(c *Client) (any, error) {
				r, err := c.Reserve(ctx, "queue", 2000, 1500*time.Millisecond, "ada")
				return result{r.Decision.Allowed, r.Decision.Delay, r.ID}, err
			},
			result{true, time.Second, "AbC-_"},
		},
		{
			"reserve for an event", decisionText, "POST", "/v1/reserve", `{"event":{"user":"ada"},"cost":1}`,
			func(c *Client) (any, error) { return c.ReserveEvent(ctx, map[string]string{"user": "ada"}, 0, 0) },
			Reservation{Decision: refused},
		},
		{
			"settle", `{"settled":true}`, "POST", "/v1/settle", `{"id":"AbC-_","cost":0}`,
			func(c *Client) (any, error) { return c.Settle(ctx, "AbC-_", 0) },
			true,
		},
		{
			"charge", `{}`, "POST", "/v1/charge", `{"rule":"tokens","key":["ada"],"cost":731}`,
			func(c *Client) (any, error) { return nil, c.Charge(ctx, "tokens", 731, "ada") }, nil,
		},
		{
			"refund", `{"refunded":2}`, "POST", "/v1/refund", `{"rule":"login","key":["ada"],"n":3}`,
			func(c *Client) (any, error) { return c.Refund(ctx, "login", 3, "ada") },
			uint64(2),
		},
		{
			"try rules", `{"errors":[{"line":2,"column":3,"message":"wrong"}]}`, "POST", "/v1/rules/try", `{"rules":"version: 1","top":3,"protect":"a"}`,
			func(c *Client) (any, error) {
				return c.TryRules(ctx, api.TrialRequest{Rules: "version: 1", Top: 3, Protect: "a"})
			},
			api.Trial{Errors: []api.Mistake{{Line: 2, Column: 3, Message: "wrong"}}},
		},
		{
			"reset", `{}`, "POST", "/v1/reset", `{"rule":"login","key":["ada"]}`,
			func(c *Client) (any, error) { return nil, c.Reset(ctx, "login", "ada") }, nil,
		},
		{
			"bans", `{"bans":[` + banText + `],"total":7,"next":"BBBBBBBBBBBBBBBB"}`, "GET", "/v1/bans?cursor=AAAAAAAAAAAAAAAA&limit=5&q=%26&rule=login", "",
			func(c *Client) (any, error) {
				return c.Bans(ctx, BanQuery{Rule: "login", Text: "&", Limit: 5, Cursor: "AAAAAAAAAAAAAAAA"})
			},
			api.BanPage{Bans: []api.Ban{ban}, Total: 7, Next: "BBBBBBBBBBBBBBBB"},
		},
		{
			"ban", banText, "POST", "/v1/bans", `{"rule":"login","key":["a","c"],"for":"2ms","reason":"why"}`,
			func(c *Client) (any, error) { return c.Ban(ctx, "login", 1500*time.Microsecond, "why", "a", "c") },
			ban,
		},
		{
			"unban", `{"unbanned":1}`, "POST", "/v1/bans/unban", `{"rule":"login","key":["a"]}`,
			func(c *Client) (any, error) { return c.Unban(ctx, "login", "a") },
			1,
		},
		{
			"unban all", `{"unbanned":3}`, "POST", "/v1/bans/unban", `{"rule":"login","network":"192.0.2.0/24"}`,
			func(c *Client) (any, error) {
				return c.UnbanAll(ctx, api.BanFilter{Rule: "login", Network: "192.0.2.0/24"})
			},
			3,
		},
		{
			"counters", `{"counters":[{"name":"n","fields":["client"],"spans_ms":[1000,60000],"dynamic":true,"sentence":"s","keys":3,"bytes":9}]}`,
			"GET", "/v1/counters", "",
			func(c *Client) (any, error) { return c.Counters(ctx) },
			[]api.Counter{{Name: "n", Fields: []string{"client"}, Spans: []api.Millis{1000, 60000}, Dynamic: true, Sentence: "s", Keys: 3, Bytes: 9}},
		},
		{
			"add", `{}`, "POST", "/v1/counters/a%2Fb%20c/add", `{"key":["k"],"n":3}`,
			func(c *Client) (any, error) { return nil, c.Add(ctx, "a/b c", 3, "k") }, nil,
		},
		{
			"sum", `{"lo":1,"hi":2}`, "GET", "/v1/counters/n/sum?key=a%FF&key=b&span=60000ms", "",
			func(c *Client) (any, error) { return c.Sum(ctx, "n", time.Minute, "a\xff", "b") },
			api.Count{Lo: 1, Hi: 2},
		},
		{
			"top", `{"top":[{"key":["a"],"lo":1,"hi":2}]}`, "GET", "/v1/counters/n/top?n=20", "",
			func(c *Client) (any, error) { return c.Top(ctx, "n", 20, 0) },
			[]api.KeyCount{{Key: api.KeyOf("a"), Count: api.Count{Lo: 1, Hi: 2}}},
		},
		{
			"refused", `{"refused":[{"rule":"r","key_base64":["Yf8="],"lo":1,"hi":2,"per_second":0.5,"banned_until":"2026-01-02T03:04:05Z"},` +
				`{"rule":"r","key":["b"],"lo":0,"hi":1,"per_second":0}]}`,
			"GET", "/v1/refused?n=3&span=2000ms", "",
			func(c *Client) (any, error) { return c.Refused(ctx, 3, 2*time.Second) },
			[]api.RefusedKey{{Rule: "r", Key: api.KeyOf("a\xff"), Count: api.Count{Lo: 1, Hi: 2}, PerSecond: 0.5, BannedUntil: at}, {Rule: "r", Key: api.KeyOf("b"), Count: api.Count{Hi: 1}}},
		},
		{
			"rates", `{"rates":[{"from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:05:05Z","all":{"allowed":1,"refused":2,"banned":1,"unmatched":9,"errors":3},"rules":{"r":{"allowed":4,"refused":5,"banned":7,"shadow":6,"bans":8}}}]}`,
			"GET", "/v1/rates?points=1&rules=1&span=60000ms", "",
			func(c *Client) (any, error) { return c.Rates(ctx, time.Minute, 1, true) },
			[]api.Rate{{
				From: at, To: at.Add(time.Minute), All: api.Totals{Allowed: 1, Refused: 2, Banned: 1, Unmatched: 9, Errors: 3},
				Rules: map[string]api.RuleTotals{"r": {Allowed: 4, Refused: 5, Banned: 7, Shadow: 6, Bans: 8}},
			}},
		},
		{
			"hot", `{"hot":[{"rule":"r","key":["k"],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z"}]}`, "GET", "/v1/hot", "",
			func(c *Client) (any, error) { return c.Hot(ctx) },
			[]api.HotKey{{Rule: "r", Key: api.KeyOf("k"), Since: at, Until: at.Add(time.Minute)}},
		},
		{
			"status", `{"version":"v1","started":"2026-01-02T03:04:05Z","uptime_s":60,"now_ms":7,"totals":{"allowed":1},"memory":{"budget":-1,"bytes":2,"reserved":5,"counter_bytes":3,"heap":4},` +
				`"bans":{"held":1,"remembered":2,"refused":3},"subscribers":5,"rules":{"file":"f","since":"2026-01-02T03:04:05Z","reloads":6},` +
				`"storage":{"journal_error":"no space","journal_failures":7,"snapshot_failures":8,"missing_bans":9},"role":"read"}`,
			"GET", "/v1/status", "",
			func(c *Client) (any, error) { return c.Status(ctx) },
			api.Status{
				Version: "v1", Started: at, Uptime: 60, Now: 7,
				Totals: api.Totals{Allowed: 1},
				Memory: api.Memory{Budget: -1, Bytes: 2, Reserved: 5, Counters: 3, Heap: 4},
				Bans:   api.BanCounts{Held: 1, Remembered: 2, Refused: 3}, Subscribers: 5,
				Rules:   api.RulesStatus{File: "f", Since: at, Reloads: 6},
				Storage: api.StorageStatus{JournalError: "no space", JournalFailures: 7, SnapshotFailures: 8, MissingBans: 9}, Role: "read",
			},
		},
		{
			"rules", `{"file":"f","text":"t","since":"2026-01-02T03:04:05Z","error":"e","rules":[{"name":"r","kind":"hot","fields":["client"],"sentence":"s"},` +
				`{"name":"l","kind":"limit","shadow":true,"stats":{"allowed":1,"bans":2}}],"allow":{"clients":["192.0.2.0/24"],"files":[{"name":"cdn.txt","prefixes":15}]}}`,
			"GET", "/v1/rules", "",
			func(c *Client) (any, error) { return c.Rules(ctx) },
			api.RuleSet{File: "f", Text: "t", Since: at, Error: "e", Rules: []api.Rule{
				{Name: "r", Kind: "hot", Fields: []string{"client"}, Sentence: "s"},
				{Name: "l", Kind: "limit", Shadow: true, Stats: &api.RuleStats{Allowed: 1, Bans: 2}},
			}, Allow: api.Allow{Clients: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Files: []api.AllowFile{{Name: "cdn.txt", Prefixes: 15}}}},
		},
		{
			"explain", `{"values":["a","b"],"since":"2026-01-02T03:04:05Z","refusals":[{"rule":"r","sentence":"s","fields":["client"],"key":["a"],"count":3,` +
				`"first":"2026-01-02T03:04:05Z","last":"2026-01-02T03:05:05Z","example":{"time":"2026-01-02T03:04:05Z","path":"/p","decision":{"limit":1}},"ban":` + banText + `}]}`,
			"GET", "/v1/explain?key=a&key=b", "",
			func(c *Client) (any, error) { return c.Explain(ctx, "a", "b") },
			api.Explanation{Values: []string{"a", "b"}, Since: at, Refusals: []api.Refusal{{
				Rule: "r", Sentence: "s", Fields: []string{"client"}, Key: api.KeyOf("a"), Count: 3, First: at, Last: at.Add(time.Minute),
				Example: api.RefusedEvent{Time: at, Path: "/p", Decision: api.Decision{Limit: 1}}, Ban: &ban,
			}}},
		},
		{
			"reload", `{"added":["a"],"removed":["b"],"changed":["counter c"],"bans_dropped":4}`, "POST", "/v1/rules/reload", `{"drop_bans":true}`,
			func(c *Client) (any, error) { return c.Reload(ctx, true) },
			api.RuleChanges{Added: []string{"a"}, Removed: []string{"b"}, Changed: []string{"counter c"}, BansDropped: 4},
		},
		{
			"key", `{"fields":["client"],"key":["k"],"counters":[{"counter":"n","span_ms":1000,"lo":1,"hi":2,"slots":[{"start":"2026-01-02T03:04:05Z","count":1}]}],` +
				`"rules":[{"rule":"r","decision":` + decisionText + `}],"bans":[` + banText + `]}`,
			"GET", "/v1/key?field=client&value=k", "",
			func(c *Client) (any, error) { return c.Key(ctx, []string{"client"}, []string{"k"}) },
			api.KeyReport{
				Fields:   []string{"client"},
				Key:      api.KeyOf("k"),
				Counters: []api.KeyWindow{{Counter: "n", Span: 1000, Count: api.Count{Lo: 1, Hi: 2}, Slots: []api.Slot{{Start: at, Count: 1}}}},
				Rules:    []api.KeyDecision{{Rule: "r", Decision: api.Decision{Limit: 60, RetryAfter: 1500, ResetAfter: 60000, Rule: "r", BannedUntil: 1700000000001}}},
				Bans:     []api.Ban{ban},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, asked := fake(t, 200, "application/json", tt.answer)
			got, err := tt.call(c)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, %v, want\n%+v", got, err, tt.want)
			}
			if asked.Method != tt.method || asked.URI != tt.uri || asked.Body != tt.body {
				t.Errorf("requested %s %s %s, want\n%s %s %s", asked.Method, asked.URI, asked.Body, tt.method, tt.uri, tt.body)
			}
			if got := asked.Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("Authorization is %q", got)
			}
			if got := asked.Header.Get("Content-Type"); (got == "application/json") != (tt.method == "POST") {
				t.Errorf("Content-Type is %q", got)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	const noRule = `{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no rule \"x\"","code":"NORULE"}`
	for _, tt := range []struct {
		name          string
		status        int
		media, answer string
		want          Error
		temporary     bool
	}{
		{"problem", 404, "application/problem+json", noRule, Error{api.NoRule, `there is no rule "x"`, 404, 0, nil}, false},
		{
			"mistakes of a rules file", 422, "application/problem+json", `{"detail":"d","code":"BADARG","errors":[{"line":1,"column":2,"message":"m"}]}`,
			Error{api.BadArg, "d", 422, 0, []api.Mistake{{Line: 1, Column: 2, Message: "m"}}},
			false,
		},
		{"overload", 503, "application/problem+json", `{"title":"t","code":"OVERLOAD"}`, Error{api.Overload, "t", 503, 0, nil}, true},
		{"a proxy's page", 502, "text/html", "<h1>Bad Gateway</h1>", Error{api.Failed, "the answer is 502 Bad Gateway", 502, 0, nil}, true},
		{"a proxy's refusal", 403, "text/html", "no", Error{api.NoPerm, "the answer is 403 Forbidden", 403, 0, nil}, false},
		{"another's JSON", 400, "application/json", `[1]`, Error{api.Failed, "the answer is 400 Bad Request", 400, 0, nil}, false},
		{"HTTP to HTTPS", 400, "", "Client sent HTTP.\n", Error{api.Failed, "the answer is 400 Bad Request: Client sent HTTP.", 400, 0, nil}, false},
		{"a page of text", 400, "", strings.Repeat("x", 201) + "\nmore", Error{api.Failed, "the answer is 400 Bad Request: " + strings.Repeat("x", 200), 400, 0, nil}, false},
		{"a redirect", 302, "text/html", "", Error{api.Failed, "the answer is 302 Found", 302, 0, nil}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := fake(t, tt.status, tt.media, tt.answer)
			_, err := c.Take(t.Context(), "x", 1, "k")
			e, ok := errors.AsType[*Error](err)
			if !ok || !reflect.DeepEqual(*e, tt.want) || e.Temporary() != tt.temporary {
				t.Errorf("%#v, want %#v", err, tt.want)
			}
			if ok && e.Error() != string(tt.want.Code)+" "+tt.want.Detail {
				t.Errorf("%q", e.Error())
			}
		})
	}
}

// TestNoDecision has answers without a decision: none may be taken for one.
func TestNoDecision(t *testing.T) {
	for _, answer := range []string{"", "{}", "null", "[]", `{"allowed":true}`, `{"allowed":tr`, "<html>", `{"allowed":"yes","rule":"r"}`} {
		c, _ := fake(t, 200, "application/json", answer)
		d, err := c.Take(t.Context(), "x", 1, "k")
		if err == nil || d.Allowed {
			t.Errorf("answer %q: %+v, %v", answer, d, err)
		}
	}
}

// TestNoAnswer has servers that are away, slow, or that never end.
func TestNoAnswer(t *testing.T) {
	c, _ := fake(t, 200, "application/json", `{"unbanned":`+strings.Repeat(" ", maxAnswer)+`1}`)
	if _, err := c.Unban(t.Context(), "r", "k"); err == nil || !strings.Contains(err.Error(), "answer too long (max 64 MiB)") {
		t.Errorf("an endless answer: %v", err)
	}
	if _, err := c.Unban(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "key: missing") {
		t.Errorf("unban without a key: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err := New(gone.URL, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sum(t.Context(), "n", 0, "the-key"); err == nil || !strings.HasPrefix(err.Error(), "no connection: ") || strings.Contains(err.Error(), "the-key") {
		t.Errorf("a server that is away: %v", err)
	}
	held := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer slow.Close()
	defer close(held)
	connects := &http.Transport{DialContext: func(_ context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) }} // however long that takes
	if c, err = New(slow.URL, Config{Timeout: 20 * time.Millisecond, HTTPClient: &http.Client{Transport: connects}}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "no answer in time: ") {
		t.Errorf("a slow server: %v", err)
	}
}

// TestTokenStaysHere has a server that sends the client elsewhere.
func TestTokenStaysHere(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	for _, h := range []*http.Client{nil, {CheckRedirect: nil}} {
		c := must.Get(New(s.URL, Config{Token: "secret", HTTPClient: h}))(t)
		if _, err := c.Status(t.Context()); err == nil || reached.Load() {
			t.Errorf("followed: %v", err)
		}
		c.Close()
	}
	// The control: a client that follows gets there.
	http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get(s.URL)
	if err != nil || !reached.Load() {
		t.Errorf("the redirect goes nowhere: %v", err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// TestKeyWants has no request at all for a key that cannot be.
func TestKeyWants(t *testing.T) {
	c, asked := fake(t, 200, "application/json", "{}")
	if _, err := c.Key(t.Context(), []string{"client"}, nil); err == nil || asked.Method != "" {
		t.Errorf("%v, requested %+v", err, asked)
	}
}

// TestHugeSpans has times that no Duration holds.
func TestHugeSpans(t *testing.T) {
	var d api.Decision
	must.Do(t, json.Unmarshal([]byte(`{"retry_after_ms":9223372036854775807,"reset_after_ms":-9223372036854775808}`), &d))
	if got := decisionOf(&d); got.RetryAfter < 290*365*24*time.Hour || got.ResetAfter > 0 {
		t.Errorf("%v, %v", got.RetryAfter, got.ResetAfter)
	}
}

// A Client and a Fleet reach a server on Unix sockets.
func TestUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "lately") // with a path that is short enough
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	resp, web := "unix:"+dir+"/r", "unix:"+dir+"/h"
	respListener, err := net.Listen("unix", dir+"/r")
	httpListener, err2 := net.Listen("unix", dir+"/h")
	must.Do(t, errors.Join(err, err2))
	serveAt(t, listen.Config{}, respListener)
	answers := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"version":%q}`, r.Host+" "+r.Header.Get("Authorization"))
	})}
	go answers.Serve(httpListener)
	t.Cleanup(func() { answers.Close() })
	c := must.Get(New(web, Config{Token: "token", Timeout: time.Minute}))(t)
	defer c.Close()
	if status, err := c.Status(t.Context()); err != nil || status.Version != "localhost Bearer token" || c.Addr() != web {
		t.Errorf("%s: %q, %v", c.Addr(), status.Version, err)
	}
	f := must.Get(NewFleet(FleetConfig{Nodes: []string{resp}, TLS: new(tls.Config), Timeout: time.Minute}))(t)
	defer f.Close()
	if err := f.Add(t.Context(), "hits", 3, "ada"); err != nil {
		t.Error(err)
	}
	for _, x := range []struct {
		addr string
		c    Config
	}{{"unix:", Config{}}, {"unix:h", Config{}}, {web, Config{TLS: new(tls.Config)}}, {web, Config{HTTPClient: new(http.Client)}}} {
		if _, err := New(x.addr, x.c); err == nil || !strings.Contains(err.Error(), strconv.Quote(x.addr)+": must be unix:PATH with an absolute path") {
			t.Errorf("%s, %+v: %v", x.addr, x.c, err)
		}
	}
}
