package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// TestMissingFieldRefuses compares a replay with a limiter that judges the same events, some of which lack a field: for
// rules that are spread over the cores by keys, and for rules that are not.
func TestMissingFieldRefuses(t *testing.T) {
	rnd := randtest.New(t)
	for _, limits := range []string{
		"[{name: a, key: tenant, limit: 2 per 10s}]",
		"[{name: a, key: tenant, limit: 2 per 10s}, {name: b, key: tenant, limit: 9 per 1m, when: {path: /a}}]",
		"[{name: a, key: client, limit: 4 per 10s, ban: {after: 2 refusals in 10s, for: 20s}}, {name: b, key: [client, tenant], limit: 2 per 10s, mode: shadow}, {name: c, key: tenant, limit: 3 per 10s, when: {path: /a}}]",
	} {
		text := "version: 1\nfields: {tenant: {missing: refuse}}\nlimits: " + limits + "\n"
		file := must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
		live := must.Get(ratelimit.NewLimiter(file.Limits, ratelimit.Config{}))(t)
		var log strings.Builder
		want := ""
		for i := range 400 {
			line := fmt.Sprintf("{\"t\":%d,\"client\":\"192.0.2.%d\",\"path\":%q,\"tenant\":%q}\n", 1000+i/3, rnd.IntN(3), []string{"/a", "/b"}[rnd.IntN(2)], []string{"", "acme", "other"}[rnd.IntN(3)])
			log.WriteString(line)
			var t0 int64
			var client, path, tenant string
			must.Get(fmt.Sscanf(line, "{\"t\":%d,\"client\":%q,\"path\":%q,\"tenant\":%q}", &t0, &client, &path, &tenant))(t)
			var e match.Event
			for name, v := range map[string]string{"client": client, "path": path, "tenant": tenant} {
				e.SetNamedString(name, v)
			}
			if d := live.TakeAt(epoch(t0*1e9).Time, &e, 1); d.Allowed {
				want += "A"
			} else {
				want += "D"
			}
		}
		for _, cores := range []int{1, 3} {
			report, got, err := RunDecisions(t.Context(), Config{
				Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: "json:time=t@s,client=client,path=path,tenant=tenant", Rules: file, Cores: cores,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s, %d cores: decisions\n%s, want\n%s", limits, cores, got, want)
			}
			for i, s := range live.Stats().Rules {
				if r := report.Rules[i]; uint64(r.Lacking) != s.Lacking || uint64(*r.Refused) != s.Refused+s.Banned+s.Shadow || s.Lacking > 0 && r.LackingSentence == "" {
					t.Errorf("%s: %d cores: reported %d lacking, %d refused, %q; the limiter counts %+v", limits, cores, r.Lacking, *r.Refused, r.LackingSentence, s)
				}
				for _, k := range append(report.Rules[i].Busiest, BusyKey{}) {
					if len(k.Values()) > 0 && k.Values()[0] == "" {
						t.Errorf("an event without a key is listed by one")
					}
				}
			}
		}
	}
}
