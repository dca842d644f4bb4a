package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

const answerRules = `version: 1
counters:
  requests: {key: client, spans: [1m]}
  failures: {key: client, when: {status: 4xx}, spans: [1m]}
limits:
  - {name: per-client, key: client, limit: 100 per 1m}
  - {name: failed-logins, key: client, when: {path: /login, status: 401}, limit: 2 per 10m}
bans:
  - {name: missing, key: client, when: {status: 404}, after: 3 hits in 1m, for: 1h}
hot:
  - {name: broken, key: path, when: {status: 5xx}, threshold: 2 per 2s}
  - {name: page, key: path, threshold: 4 per 2s}
`

// outcome reports an answer.
func outcome(t *testing.T, c *engine.Session, fields ...string) ratelimit.Decision {
	t.Helper()
	must.Do(t, c.QueueCheck(event(c, fields...), 1, engine.Terms{Outcome: true}))
	for d, err := range c.Decide() {
		if err != nil {
			t.Fatal(err)
		}
		return *d
	}
	t.Fatal("no decision is listed")
	return ratelimit.Decision{}
}

// TestAnswers checks what limits, bans, counters and hot rules count for a request and for its
// answer.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, answerRules)
		c := e.Session()
		const client = "192.0.2.1"
		for i, want := range []string{"failed-logins", "failed-logins", "failed-logins"} {
			d := check(t, c, event(c, "client", client, "path", "/login"), 1)
			if d.Rule != want || d.Allowed != (i < 2) {
				t.Fatalf("login %d is judged %+v", i, d)
			}
			if d.Allowed {
				if d = outcome(t, c, "client", client, "path", "/login", "status", "401"); !d.Allowed || d.Remaining != uint64(1-i) {
					t.Errorf("answer %d is judged %+v", i, d)
				}
			}
		}
		if d := check(t, c, event(c, "client", client, "path", "/login", "status", "401"), 1); d.Allowed {
			t.Errorf("an event with its answer, which is judged at once: %+v", d)
		}
		if n := e.Totals(); n.Allowed != 2 || n.Refused != 2 || e.Status().Outcomes != 2 {
			t.Errorf("%+v, and %d outcomes", n, e.Status().Outcomes)
		}
		for counter, want := range map[string]uint64{"requests": 4, "failures": 3} { // counters also count refused events
			if n, _, err := c.Count(counter, time.Minute, client); err != nil || n.Hi != want {
				t.Errorf("%s: %+v %v, want %d", counter, n, err, want)
			}
		}
		for i := range 4 {
			if d := outcome(t, c, "client", "192.0.2.2", "path", "/no", "status", "404"); !d.Allowed || d.Started != (i == 3) {
				t.Errorf("404 number %d: %+v", i, d)
			}
		}
		if d := check(t, c, event(c, "client", "192.0.2.2", "path", "/"), 1); d.Allowed || d.Rule != "missing" {
			t.Errorf("a client that was banned for its 404s: %+v", d)
		}
		for range 2 {
			outcome(t, c, "client", "192.0.2.3", "path", "/page", "status", "500")
		}
		if hot, err := e.Hot().List("broken"); err != nil || len(hot) != 1 {
			t.Errorf("paths with errors: %+v %v", hot, err)
		}
		if hot, err := e.Hot().List("page"); err != nil || len(hot) != 0 {
			t.Errorf("paths without requests are listed by requests: %+v %v", hot, err)
		}
	})
}

// TestRequestLength rejects a request with a value that is too long for a rule that counts its answer, as the answer is.
func TestRequestLength(t *testing.T) {
	c := newEngine(t, "version: 1\nlimits: [{name: failed-logins, key: client, when: {path: /login, status: 401}, limit: 2 per 10m}]").Session()
	long := strings.Repeat("x", keys.Max+1)
	for _, terms := range []engine.Terms{{}, {Outcome: true}} {
		fields := []string{"client", long, "path", "/login"}
		if terms.Outcome {
			fields = append(fields, "status", "401")
		}
		if err := c.QueueCheck(event(c, fields...), 1, terms); err == nil || !strings.Contains(err.Error(), "client: 1025 bytes") {
			t.Errorf("outcome %t: %v", terms.Outcome, err)
		}
	}
}
