package engine_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

const fieldRules = `version: 1
fields: {tenant: {header: X-Tenant}, plan: {}, region: {}}
counters:
  tenants: {key: tenant, spans: [1m]}
limits:
  - {name: per-client, key: client, limit: 3 per 1m}
  - {name: plan, key: user, when: {plan: free}, limit: 3 per 1m}
  - {name: auth, key: client, when: {log: /var/log/auth.log}, limit: 3 per 1m}
hot:
  - {name: page, key: [path, region], threshold: 3 per 2s}
`

// A field is known if it is a well-known one or if any rule or counter uses it.
func TestPrepareFields(t *testing.T) {
	e := newEngine(t, fieldRules)
	c := e.Session()
	for _, x := range []struct{ field, want string }{
		{"client", ""},
		{"agent", ""},  // well known, and no rule uses it
		{"tenant", ""}, // the key of a counter
		{"plan", ""},   // in a condition
		{"region", ""}, // the key of a hot rule
		{"cleint", `field "cleint": unknown; did you mean client?`},
		{"Client", `field "Client": unknown; did you mean client?`},
		{"pth", `field "pth": unknown; did you mean path?`},
		{"tennant", `field "tennant": unknown; did you mean tenant?`},
		{"weather", `field "weather": unknown: must be declared under fields in the rules file, or be one of client, object, method, path, query, protocol, ` +
			`status, size, user, host, referer, agent, duration, plan, region, tenant`},
		{"log", `field "log": must be left out, as only events of logs have it`},       // in a condition
		{"format", `field "format": must be left out, as only events of logs have it`}, // in no rule
		{strings.Repeat("x", 5000), `field "` + strings.Repeat("x", 64) + `": unknown: must`},
	} {
		err := c.Prepare(event(c, "client", "192.0.2.1", x.field, "v"))
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", x.field, err)
		case x.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "BADARG "+x.want)):
			t.Errorf("%s: %v; want %s", x.field, err, x.want)
		}
	}
	for field, want := range map[string]string{"client": "", "tenant": "", "key": "", "cleint": `BADARG field "cleint": unknown; did you mean client?`} {
		if _, err := e.Inspect([]string{field}, []string{"v"}); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("report on %s: %v, want %q", field, err, want)
		}
	}
	// A rule can be removed before the services that send its field.
	must.Get(e.Replace(parse(t, "version: 1\n"), true))(t)
	if err := c.Prepare(event(c, "tenant", "v")); err != nil {
		t.Errorf("after the rules that use it were removed: %v", err)
	}
}

// A path with a query has the same fields as in a log.
func TestPrepareTarget(t *testing.T) {
	c := newEngine(t, "").Session()
	for _, x := range []struct{ fields, want []string }{
		{[]string{"path", "/login?x=1"}, []string{"/login", "/login", "x=1"}},
		{[]string{"path", "/a/../login"}, []string{"/a/../login", "/a/../login", ""}},
		{[]string{"path", "/login?x=1", "query", "y=2", "object", "o"}, []string{"/login", "o", "y=2"}},
		{[]string{"path", "/?"}, []string{"/", "/", ""}},
		{[]string{"object", "o?p"}, []string{"", "o?p", ""}},
		{[]string{"client", "192.0.2.1"}, []string{"", "", ""}},
	} {
		ev := event(c, x.fields...)
		must.Do(t, c.Prepare(ev))
		got := []string{string(ev.Get(match.Path)), string(ev.Get(match.Object)), string(ev.Get(match.Query))}
		if !slices.Equal(got, x.want) {
			t.Errorf("%q: path, object and query are %q, want %q", x.fields, got, x.want)
		}
	}
}

// Events that no rule can match, because they lack fields, are warned about once a
// minute; events that conditions leave alone are not.
func TestUnmatchedIsWarnedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := must.Get(engine.New(engine.Config{Rules: parse(t, fieldRules), Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		defer e.Close()
		c := e.Session()
		warned := func(fields ...string) string {
			log.Reset()
			check(t, c, event(c, fields...), 1)
			return log.String()
		}
		time.Sleep(time.Hour)
		for _, fields := range [][]string{
			{"client", "192.0.2.1"},
			{"user", "ada", "plan", "paid"},     // the condition does not hold
			{"path", "/", "region", "eu"},       // for the hot rule alone
			{"tenant", "t1", "agent", "curl/8"}, // for the counter alone
		} {
			if got := warned(fields...); got != "" {
				t.Errorf("%q: %s", fields, got)
			}
		}
		got := warned("user", "ada", "agent", "curl/8")
		for _, want := range []string{
			"level=WARN", `fields="user, agent"`, `needed="per-client: client; plan: plan, user; auth: client, log; page: path, region; tenants: tenant"`, "unmatched=4",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		for range 100 {
			if got := warned("user", "ada"); got != "" {
				t.Fatalf("a second warning: %s", got)
			}
		}
		time.Sleep(time.Minute)
		if got := warned("path", "/"); !strings.Contains(got, "fields=path") || !strings.Contains(got, "unmatched=101") {
			t.Errorf("after a minute: %s", got)
		}
		must.Get(e.Replace(parse(t, "version: 1\n"), true))(t)
		time.Sleep(time.Minute)
		if got := warned("client", "192.0.2.1"); !strings.Contains(got, `needed="no rules are in force"`) {
			t.Errorf("without rules: %s", got)
		}
	})
}
