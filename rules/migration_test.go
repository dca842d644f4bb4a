package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// guideLimiter returns a limiter of the rules in docs/guides/migration.md that have this
// text in them.
func guideLimiter(t *testing.T, has string) *ratelimit.Limiter {
	t.Helper()
	guide := must.Get(os.ReadFile(filepath.Join("..", "docs", "guides", "migration.md")))(t)
	for _, part := range strings.Split(string(guide), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		if !strings.Contains(text, "version: 1") || !strings.Contains(text, has) {
			continue
		}
		f := must.Get(rules.Parse("migration.md", []byte(text)))(t)
		l := must.Get(ratelimit.NewLimiter(f.Limits, ratelimit.Config{}))(t)
		return l
	}
	t.Fatalf("the guide has no rules with %q", has)
	return nil
}

// TestAllowsAsNginx compares the rules that the guide gives for limit_req with nginx, request
// by request: burst=20 nodelay allows 21 requests at once, and then one for each interval of
// the rate.
func TestAllowsAsNginx(t *testing.T) {
	l := guideLimiter(t, "burst 21")
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	e.SetString(match.Path, "/")
	ms, excess, last, refused := int64(1_700_000_000_000), int64(0), int64(0), 0
	for i := range 2000 {
		ms += []int64{0, 0, 0, 40, 100, 250, 0, 7, 20, 30}[i%10]
		if i%500 == 0 {
			ms += 3000
		}
		// ngx_http_limit_req_lookup, in thousandths of a request.
		next := max(excess-10*(ms-last)+1000, 0)
		if last == 0 {
			next = 0
		}
		allowed := next <= 20*1000
		if allowed {
			excess, last = next, ms
		} else {
			refused++
		}
		if d := l.TakeAt(time.UnixMilli(ms), &e, 1); d.Allowed != allowed {
			t.Fatalf("request %d: %+v, and nginx has an excess of %d", i, d, next)
		}
	}
	if refused == 0 {
		t.Error("nginx refused nothing: the test shows nothing")
	}
}

// TestAllowsAsEnvoy compares a rule that the guide gives for a descriptor with windows that
// begin with the minute.
func TestAllowsAsEnvoy(t *testing.T) {
	l := guideLimiter(t, "60 per minute")
	count := map[int64]int{}
	at := time.Unix(1_700_000_000, 0)
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	for i := range 900 {
		at = at.Add(700 * time.Millisecond)
		want := count[at.Unix()/60] < 60
		if want {
			count[at.Unix()/60]++
		}
		if d := l.TakeAt(at, &e, 1); d.Allowed != want {
			t.Fatalf("request %d at %v: %+v, in a minute with %d", i, at, d, count[at.Unix()/60])
		}
	}
}
