package latelyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A body is a problem document as RFC 9457 and the draft have it.
type body struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies"`
	Detail   string   `json:"detail"`
	Missing  string   `json:"missing"`
}

func readBody(t testing.TB, w *httptest.ResponseRecorder) body {
	t.Helper()
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	var b body
	if err := d.Decode(&b); err != nil || d.More() {
		t.Fatalf("the body is not a problem document: %v", err)
	}
	return b
}

func TestProblems(t *testing.T) {
	several := limited(t, "api", 1, time.Minute)
	several.Limits = append(several.Limits, ratelimit.Limit{N: 9, Span: time.Hour})
	banning := limited(t, `lo"gin<é>`, 1, time.Minute)
	banning.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	flood := ratelimit.Rule{Name: "flood", Key: mustKey(t, "client"), Ban: &ratelimit.Ban{After: 5, Span: time.Minute, For: time.Hour}}
	shadow := limited(t, "planned", 0, time.Minute)
	shadow.Shadow = true
	m := mustNew(t, mustLimiter(t, shadow, several, banning, limited(t, "wide", 100, time.Minute), flood), Config{})
	h := m.Wrap(new(ok))
	for i, want := range []struct {
		code     int
		kind     string
		violated []string
	}{
		{200, "", nil},
		{429, "quota-exceeded", []string{"api/60s", `lo"gin<é>`}},
		{429, "quota-exceeded", []string{"api/60s", `lo"gin<é>`}},
		{429, "abnormal-usage-detected", []string{`lo"gin<é>`}},
		{429, "abnormal-usage-detected", []string{`lo"gin<é>`}},
	} {
		w := do(h, request("192.0.2.1:1"))
		if w.Code != want.code {
			t.Fatalf("request %d: %d; want %d", i, w.Code, want.code)
		}
		if w.Code == 200 {
			if w.Header().Get("Cache-Control") != "" || w.Body.String() != "served" {
				t.Errorf("an allowed request gets %v %s", w.Header(), w.Body)
			}
			continue
		}
		if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
			t.Errorf("request %d: Content-Length is %s of %d", i, got, w.Body.Len())
		}
		b := readBody(t, w)
		if b.Type != "https://iana.org/assignments/http-problem-types#"+want.kind || b.Status != want.code || b.Title == "" || !slices.Equal(b.Violated, want.violated) {
			t.Errorf("request %d: the body is %+v; want %s, %q", i, b, want.kind, want.violated)
		}
		if got := header(t, w, "Content-Type"); got != "application/problem+json" {
			t.Errorf("request %d: Content-Type is %s", i, got)
		}
		if got := header(t, w, "Cache-Control"); got != "no-store" {
			t.Errorf("request %d: Cache-Control is %s", i, got)
		}
	}
}

func TestBanOnlyRule(t *testing.T) {
	flood := ratelimit.Rule{Name: "flood", Key: mustKey(t, "client"), Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: 90 * time.Second}}
	synctest.Test(t, func(t *testing.T) {
		h := mustNew(t, mustLimiter(t, flood), Config{}).Wrap(new(ok))
		for i, want := range []int{200, 429} {
			w := do(h, request("192.0.2.1:1"))
			if w.Code != want || w.Header().Get("RateLimit") != "" || w.Header().Get("RateLimit-Policy") != "" {
				t.Errorf("request %d: %d %v", i, w.Code, w.Header())
			}
			if w.Code == 429 && (header(t, w, "Retry-After") != "90" || !slices.Equal(readBody(t, w).Violated, []string{"flood"})) {
				t.Errorf("request %d: %v %s", i, w.Header(), w.Body)
			}
		}
	})
}

func TestHeadHasNoBody(t *testing.T) {
	h := mustNew(t, mustLimiter(t, limited(t, "none", 0, time.Minute)), Config{}).Wrap(new(ok))
	get := do(h, request("192.0.2.1:1"))
	r := request("192.0.2.1:1")
	r.Method = "HEAD"
	head := do(h, r)
	if head.Code != 429 || head.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", head.Code, head.Body.Len())
	}
	for _, name := range []string{"Content-Length", "Content-Type", "Cache-Control", "RateLimit", "RateLimit-Policy"} {
		if a, b := header(t, get, name), header(t, head, name); a != b {
			t.Errorf("%s: GET has %s, HEAD %s", name, a, b)
		}
	}
}

// A failing store is reported as such.
type failingStore struct {
	store.Store[*ratelimit.Set, ratelimit.BanRecord] // no other method is called

	err error
}

func (failingStore) DecideKnown(*store.Request[*ratelimit.Set]) bool { return false }

func (failingStore) Nodes() int { return 0 }

func (s failingStore) Decide(_ context.Context, batch []*store.Request[*ratelimit.Set]) {
	for _, r := range batch {
		r.Err = s.err
	}
}

func TestStoreFailure(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		policy ratelimit.FailPolicy
		err    error
		want   int
	}{
		{ratelimit.FailOpen, away, 200},
		{ratelimit.FailLocal, away, 200},
		{ratelimit.FailClosed, away, 503},
		{ratelimit.FailClosed, ratelimit.ErrKeyTooLong, 431},
	} {
		rule := limited(t, "login", 5, time.Minute)
		rule.OnStoreFailure = c.policy
		set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rule))(t)
		var seen error
		l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Store: failingStore{err: c.err}}))(t)
		m := mustNew(t, l, Config{
			Observe: func(_ *http.Request, v Verdict) { seen = v.Decision.Err },
		})
		w := do(m.Wrap(new(ok)), request("192.0.2.1:1"))
		if w.Code != c.want || !errors.Is(seen, c.err) {
			t.Errorf("%v, %v: %d, and the observer saw %v", c.policy, c.err, w.Code, seen)
		}
		if w.Header().Get("Retry-After") != "" {
			t.Errorf("%v: the end of the store's failure is unknown; Retry-After is %s", c.policy, w.Header().Get("Retry-After"))
		}
		if body := w.Body.String(); c.want == 503 && !strings.Contains(body, `"violated-policies":["login"]`) {
			t.Errorf("the body is %s", body)
		}
	}
}

func TestJitter(t *testing.T) {
	m := mustNew(t, mustLimiter(t, limited(t, "one", 1, time.Minute)), Config{Jitter: 3 * time.Second})
	h := m.Wrap(new(ok))
	do(h, request("192.0.2.1:1"))
	seen := map[string]int{}
	for range 300 {
		w := do(h, request("192.0.2.1:1"))
		checkDraft(t, w.Header(), w.Code)
		seen[header(t, w, "Retry-After")]++
	}
	if len(seen) < 4 || seen["59"] > 0 && len(seen) > 5 || seen["64"] > 0 {
		t.Errorf("Retry-After was %v; want 60 to 63", seen)
	}
}

// retryRules are rules of every kind that refuses for a time.
func retryRules(t testing.TB, rnd *rand.Rand) map[string][]ratelimit.Rule {
	ms := func(from, to int) time.Duration { return time.Duration(from+rnd.IntN(to-from)) * time.Millisecond }
	// A client sends about 160 requests a second; a span in which it sends fewer than
	// the limit would never refuse one.
	exact := limited(t, "exact", 100, ms(2000, 30_000))
	exact.Algorithm = ratelimit.Exact
	several := limited(t, "several", 3, ms(500, 2000))
	several.Limits = append(several.Limits, ratelimit.Limit{N: 10, Span: ms(5000, 20_000)}, ratelimit.Limit{N: 80, Span: ms(60_000, 90_000)})
	counting := limited(t, "counting", 3, ms(500, 5000))
	counting.CountRefused = true
	banning := limited(t, "banning", 5, ms(1000, 3000))
	banning.Ban = &ratelimit.Ban{After: 3, Of: ratelimit.Refusals, Span: ms(10_000, 60_000), For: ms(1000, 90_000), Factor: 1.5, Max: 10 * time.Minute}
	hits := ratelimit.Rule{Name: "hits", Key: mustKey(t, "client"), Ban: &ratelimit.Ban{After: 20, Span: ms(1000, 30_000), For: ms(1000, 60_000)}}
	rules := map[string][]ratelimit.Rule{
		"small":    {limited(t, "small", 1+uint64(rnd.IntN(5)), ms(1, 10_000))},
		"ring":     {limited(t, "ring", 129+uint64(rnd.IntN(50)), ms(3000, 60_000))},
		"exact":    {exact},
		"several":  {several},
		"counting": {counting},
		"banning":  {banning},
		"hits":     {hits},
		"all":      {exact, several, banning, hits, limited(t, "ring", 65, ms(5000, 60_000))},
	}
	for _, name := range limit.Algorithms() {
		a := must.Get(limit.AlgorithmNamed(name))(t)
		if a == ratelimit.LeakyBucket {
			continue // a client alone waits for its turn and is never refused
		}
		r := limited(t, name, 1+uint64(rnd.IntN(100)), time.Minute)
		r.Algorithm = a
		rules["algorithm "+name] = []ratelimit.Rule{r}
	}
	return rules
}

// After any refusal, a client that waits for Retry-After, and sends nothing else meanwhile, is allowed. A client that waits
// a second less is not, where waiting does not itself count.
func TestRetryAfterIsTrue(t *testing.T) {
	rnd := randtest.New(t)
	rounds, refusals := 1, 150
	if longTests() {
		rounds, refusals = 20, 700
	}
	total := 0
	for range rounds {
		for name, rules := range retryRules(t, rnd) {
			synctest.Test(t, func(t *testing.T) {
				h := unended(mustNew(t, mustLimiter(t, rules...), Config{}))
				total += lone(t, h, rnd, refusals, name == "small" || name == "ring" || name == "exact" || name == "several")
			})
			if t.Failed() {
				t.Fatalf("with the rules %s: %+v", name, rules)
			}
		}
	}
	t.Logf("%d refusals, %d allowed after Retry-After", total, total)
}

// unended is a handler whose requests stay under way, so that only the lease of
// an InFlight limit ends them.
func unended(m *Middleware) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Allow(w, r) })
}

// lone is a client alone: it sends at random until refused, then waits.
func lone(t *testing.T, h http.Handler, rnd *rand.Rand, refusals int, early bool) (refused int) {
	for refused < refusals {
		w := do(h, request("192.0.2.1:1"))
		if w.Code == 200 {
			if rnd.IntN(4) == 0 { // else at once
				time.Sleep(time.Duration(rnd.Int64N(int64(50 * time.Millisecond))))
			}
			continue
		}
		refused++
		seconds, err := strconv.Atoi(header(t, w, "Retry-After"))
		if err != nil || seconds < 1 {
			t.Fatalf("Retry-After is %v: %v", w.Header(), err)
		}
		if early && seconds > 1 {
			time.Sleep(time.Duration(seconds-1) * time.Second)
			if w := do(h, request("192.0.2.1:1")); w.Code == 200 {
				t.Errorf("Retry-After is %d, but a second less is enough", seconds)
			}
			seconds = 1
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		if w := do(h, request("192.0.2.1:1")); w.Code != 200 {
			t.Fatalf("refused again after %d s: %v %s", seconds, w.Header(), w.Body)
		}
	}
	return refused
}

// TestMissingField refuses a request without a field with 401, and shows the remaining quota of the other limits.
func TestMissingField(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: []match.Source{{Field: "api_key", Header: "X-API-Key", Refuse: true}}},
		limited(t, "wide", 5, time.Minute), limited(t, "keys", 1, time.Minute, "api_key")))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	page := must.Get(NewPage("<p>{{status}} {{title}} {{retry_after}}</p>"))(t)
	h := mustNew(t, l, Config{Page: page}).Wrap(new(ok))
	for range 3 {
		w := do(h, request("192.0.2.1:1"))
		b := readBody(t, w)
		if w.Code != 401 || b.Status != 401 || b.Missing != "api_key" || b.Detail != "the request lacks the header X-API-Key" || b.Violated != nil {
			t.Errorf("%d %+v", w.Code, b)
		}
		if got := header(t, w, "Www-Authenticate"); got != `Key header="X-API-Key"` || w.Header().Get("Retry-After") != "" {
			t.Errorf("the header is %v", w.Header())
		}
		if policy, left := header(t, w, "Ratelimit-Policy"), header(t, w, "Ratelimit"); policy != `"wide";q=5;w=60` || left != `"wide";r=5` {
			t.Errorf("the limits are %s, %s", policy, left)
		}
	}
	r := request("192.0.2.1:1")
	r.Header.Set("Accept", "text/html")
	if w := do(h, r); w.Code != 401 || w.Body.String() != "<p>401 Unauthorized </p>" {
		t.Errorf("the page is %d %s", w.Code, w.Body)
	}
	r = request("192.0.2.1:1")
	r.Header.Set("X-API-Key", "k")
	if w := do(h, r); w.Code != 200 || header(t, w, "Ratelimit") != `"wide";r=4;t=60, "keys";r=0;t=60` {
		t.Errorf("with the field: %d %v", w.Code, w.Header())
	}
	legacy := do(mustNew(t, l, Config{Headers: Legacy}).Wrap(new(ok)), request("192.0.2.1:1"))
	if legacy.Code != 401 || legacy.Header().Get("X-Ratelimit-Limit") != "" {
		t.Errorf("legacy: %d %v", legacy.Code, legacy.Header())
	}
}

// tellerSet has one rule on the client.
func tellerSet(t *testing.T) *ratelimit.Set {
	t.Helper()
	key := must.Get(match.NewKey(match.Fold{}, "client"))(t)
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "api", Key: key, Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	}))(t)
	return set
}

// A decision alone, as forward-auth has it, is answered as the middleware answers it.
func TestDecisionAloneIsAnsweredAsByTheMiddleware(t *testing.T) {
	set := tellerSet(t)
	limiter := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	var seen ratelimit.Decision
	m := must.Get(New(limiter, Config{Observe: func(_ *http.Request, v Verdict) { seen = v.Decision }}))(t)
	handler := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	policies := ratelimitheader.New(set, false)
	for i := range 4 {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		handler.ServeHTTP(w, r)
		h, outcomes := make(http.Header), policies.Deciding(nil, &seen)
		policies.WriteHeader(h, nil, outcomes, &seen)
		alone := refusal.Refusal{Set: set, Policies: &policies, Decision: seen, Outcomes: outcomes}
		if !seen.Allowed {
			alone.WriteHeader(h, 0)
		}
		for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "Retry-After"} {
			if !slices.Equal(h[name], w.Header()[name]) {
				t.Errorf("request %d: %s is %q; the middleware writes %q", i, name, h[name], w.Header()[name])
			}
		}
		if seen.Allowed != (i < 2) {
			t.Fatalf("request %d: allowed %v", i, seen.Allowed)
		}
		if seen.Allowed {
			continue
		}
		body, _, status := alone.AppendBody(nil, nil, nil, h)
		if string(body) != w.Body.String() || status != w.Code {
			t.Errorf("request %d: %d %s; the middleware answers %d %s", i, status, body, w.Code, w.Body)
		}
	}
}
