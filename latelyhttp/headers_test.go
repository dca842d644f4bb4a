package latelyhttp

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

func TestDraftHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		several := limited(t, "api", 3, 10*time.Second)
		several.Limits = append(several.Limits, ratelimit.Limit{N: 5, Span: time.Minute}, ratelimit.Limit{N: 2, Span: 1500 * time.Millisecond})
		hidden := limited(t, "planned", 1, time.Minute)
		hidden.Shadow = true
		banOnly := ratelimit.Rule{Name: "flood", Key: mustKey(t, "client"), Ban: &ratelimit.Ban{After: 100, Span: time.Minute, For: time.Hour}}
		other := limited(t, `q"u\o€`, 100, time.Hour, "tenant")
		m := mustNew(t, mustLimiter(t, several, hidden, banOnly, other), Config{})
		h := m.Wrap(new(ok))
		const policy = `"api/10s";q=3;w=10, "api/60s";q=5;w=60, "api/1500ms";q=2;w=2`
		for i, step := range []struct {
			wait            time.Duration
			tenant          string
			code            int
			policies, limit string
			retryAfter      string
		}{
			{0, "", 200, policy, `"api/1500ms";r=1;t=2`, ""},
			{0, "a", 200, policy + `, "q\"u\\o%E2%82%AC";q=100;w=3600`, `"api/1500ms";r=0;t=2, "q\"u\\o%E2%82%AC";r=99;t=3600`, ""},
			{100 * time.Millisecond, "", 429, policy, `"api/1500ms";r=0;t=2`, "2"},
			{100 * time.Millisecond, "a", 429, policy + `, "q\"u\\o%E2%82%AC";q=100;w=3600`, `"api/1500ms";r=0;t=2, "q\"u\\o%E2%82%AC";r=99;t=2`, "2"},
			{1300 * time.Millisecond, "", 200, policy, `"api/10s";r=0;t=10`, ""},
			{0, "", 429, policy, `"api/10s";r=0;t=9`, "9"},
		} {
			time.Sleep(step.wait)
			r := request("192.0.2.1:1")
			if step.tenant != "" {
				r.Header.Set("X-Tenant", step.tenant)
			}
			w := do(h, r)
			if w.Code != step.code {
				t.Errorf("step %d: %d; want %d", i, w.Code, step.code)
			}
			if got := header(t, w, "RateLimit-Policy"); got != step.policies {
				t.Errorf("step %d: RateLimit-Policy is\n  %s\nwant\n  %s", i, got, step.policies)
			}
			if got := header(t, w, "RateLimit"); got != step.limit {
				t.Errorf("step %d: RateLimit is\n  %s\nwant\n  %s", i, got, step.limit)
			}
			if got := w.Header().Get("Retry-After"); got != step.retryAfter {
				t.Errorf("step %d: Retry-After is %q; want %q", i, got, step.retryAfter)
			}
		}
	})
}

// Items of the fields: a String of RFC 9651, and the parameters of the draft, which are Integers and one String.
const (
	sfString   = `("(?:[ !#-\[\]-~]|\\["\\])*")`
	policyItem = sfString + `;q=([0-9]{1,15})(?:;w=[1-9][0-9]{0,14}|;qu="concurrent-requests")`
	limitItem  = sfString + `;r=([0-9]{1,15})(?:;t=([1-9][0-9]{0,14}))?`
)

var (
	policyList, limitList = listOf(policyItem), listOf(limitItem)
	policyForm, limitForm = regexp.MustCompile(policyItem), regexp.MustCompile(limitItem)
)

// listOf matches a List of RFC 9651 of such items, and an absent field.
func listOf(item string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + item + `(?:, ` + item + `)*)?$`)
}

// checkDraft checks the form of both fields, and all other requirements of the draft.
func checkDraft(t *testing.T, h http.Header, code int) {
	t.Helper()
	policies, limits := strings.Join(h["Ratelimit-Policy"], ", "), strings.Join(h["Ratelimit"], ", ")
	if !policyList.MatchString(policies) || !limitList.MatchString(limits) {
		t.Fatalf("RateLimit-Policy is %s, and RateLimit %s", policies, limits)
	}
	quotas := map[string]uint64{}
	for _, p := range policyForm.FindAllStringSubmatch(policies, -1) {
		quotas[p[1]] = number(t, p[2])
	}
	retry, retries := uint64(math.MaxUint64), h["Retry-After"]
	if retries != nil {
		retry = number(t, retries[0])
	}
	if code == 200 && retries != nil || retry < 1 {
		t.Errorf("%d with Retry-After %q", code, retries)
	}
	for _, l := range limitForm.FindAllStringSubmatch(limits, -1) {
		if q, known := quotas[l[1]]; !known || number(t, l[2]) > q || l[3] != "" && number(t, l[3]) > retry {
			t.Errorf("a limit is %s; its policy has q=%d, and Retry-After is %q", l[0], q, retries)
		}
	}
}

func number(t testing.TB, text string) uint64 {
	t.Helper()
	return must.Get(strconv.ParseUint(text, 10, 64))(t)
}

func TestDraftHeadersParse(t *testing.T) {
	rnd := randtest.New(t)
	n := 3000
	if longTests() {
		n = 300_000
	}
	synctest.Test(t, func(t *testing.T) {
		var rules []ratelimit.Rule
		for i, name := range []string{"plain", `with "quotes" and \`, "line\nbreak", "ümlaut", ", ;=", "\x00\xff", "%41", strings.Repeat("long", 100)} {
			r := limited(t, name, 1<<rnd.IntN(8), time.Duration(1+rnd.IntN(90_000))*time.Millisecond, []string{"client", "tenant"}[i%2])
			if i%3 == 0 {
				r.Limits = append(r.Limits, ratelimit.Limit{N: math.MaxUint32, Span: limit.MaxSpan})
			}
			if i%4 == 0 {
				r.Ban = &ratelimit.Ban{After: 20, Of: ratelimit.Refusals, Span: time.Minute, For: 10 * time.Second}
			}
			rules = append(rules, r)
		}
		h := mustNew(t, mustLimiter(t, rules...), Config{
			Cost: func(*http.Request) uint64 { return uint64(rnd.IntN(4)) },
		}).Wrap(new(ok))
		for range n {
			r := request("192.0.2.1:1")
			if rnd.IntN(2) == 0 {
				r.Header.Set("X-Tenant", "a")
			}
			w := do(h, r)
			checkDraft(t, w.Header(), w.Code)
			if t.Failed() {
				return
			}
			time.Sleep(time.Duration(rnd.Int64N(int64(2 * time.Second))))
		}
	})
}

func TestLegacyHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins at 946684800
		rule := limited(t, "a", 2, 90*time.Second)
		rule.Ban = &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
		l := mustLimiter(t, rule)
		delta := mustNew(t, l, Config{Headers: Legacy}).Wrap(new(ok))
		epoch := mustNew(t, l, Config{Headers: LegacyEpoch}).Wrap(new(ok))
		for i, step := range []struct {
			h                       http.Handler
			limit, remaining, reset string
		}{
			{delta, "2", "1", "90"},
			{epoch, "2", "0", "946684891"},
			{delta, "2", "0", "90"},  // refused
			{delta, "", "0", "3600"}, // banned
			{epoch, "", "0", "946688402"},
		} {
			w := do(step.h, request("192.0.2.1:1"))
			got := [3]string{w.Header().Get("X-RateLimit-Limit"), w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("X-RateLimit-Reset")}
			if got != [3]string{step.limit, step.remaining, step.reset} || w.Header().Get("RateLimit") != "" {
				t.Errorf("step %d: limit, remaining, reset are %q: %v", i, got, w.Header())
			}
			time.Sleep(500 * time.Millisecond)
		}
		none := mustNew(t, l, Config{Headers: NoHeaders}).Wrap(new(ok))
		w := do(none, request("192.0.2.1:1"))
		for name := range w.Header() {
			if strings.Contains(strings.ToLower(name), "ratelimit") {
				t.Errorf("NoHeaders sends %s", name)
			}
		}
		if w.Header().Get("Retry-After") == "" {
			t.Error("NoHeaders leaves out Retry-After")
		}
	})
}

// Events that no rule is about have no fields.
func TestNoRuleNoHeaders(t *testing.T) {
	for headers := range numHeaders {
		m := mustNew(t, mustLimiter(t, limited(t, "a", 1, time.Minute, "tenant")), Config{Headers: headers})
		w := do(m.Wrap(new(ok)), request("192.0.2.1:1"))
		if len(w.Header()) != 1 { // Content-Type of the handler
			t.Errorf("Headers %d: %v", headers, w.Header())
		}
	}
}

// Two middlewares, one around the other, both add their rules.
func TestNestedHeaders(t *testing.T) {
	outer := mustNew(t, mustLimiter(t, limited(t, "all", 5, time.Minute)), Config{})
	inner := mustNew(t, mustLimiter(t, limited(t, "one", 3, time.Minute)), Config{})
	w := do(outer.Wrap(inner.Wrap(new(ok))), request("192.0.2.1:1"))
	for name, want := range map[string]string{"RateLimit-Policy": `"all";q=5;w=60|"one";q=3;w=60`, "RateLimit": `"all";r=4;t=60|"one";r=2;t=60`} {
		if got := strings.Join(w.Header().Values(name), "|"); got != want {
			t.Errorf("%s is %s; want %s", name, got, want)
		}
	}
	checkDraft(t, w.Header(), w.Code)
}

func TestHiddenNames(t *testing.T) {
	secret := limited(t, "secret-login", 1, time.Minute)
	secret.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	m := mustNew(t, mustLimiter(t, limited(t, "secret-all", 9, time.Minute), secret), Config{HideNames: true})
	h := m.Wrap(new(ok))
	bodies := ""
	for range 5 {
		w := do(h, request("192.0.2.1:1"))
		checkDraft(t, w.Header(), w.Code)
		if got := header(t, w, "RateLimit-Policy"); got != `"policy-1";q=9;w=60, "policy-2";q=1;w=60` {
			t.Errorf("RateLimit-Policy is %s", got)
		}
		for name, lines := range w.Header() {
			if strings.Contains(strings.Join(lines, ""), "secret") {
				t.Errorf("%s is %q", name, lines)
			}
		}
		bodies += w.Body.String()
	}
	if strings.Contains(bodies, "secret") || !strings.Contains(bodies, `["policy-2"]`) {
		t.Errorf("the bodies are\n%s", bodies)
	}
}
