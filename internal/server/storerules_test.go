package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// TestServersCountByRule has two servers with one store decide: each reports its own decisions by rule, in the list of
// rules, the metrics and the rates. Both report all bans.
func TestServersCountByRule(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	a, b := newNode(t, storeOf(redis)), newNode(t, storeOf(redis))
	a.wantReady(200)
	b.wantReady(200)
	for range 3 {
		a.take("shared", "192.0.2.1")
	}
	a.resp("TAKE shared 192.0.2.1", "TAKE shared 192.0.2.1", "TAKE closed ada", "BAN shared 192.0.2.2 1h")
	b.take("shared", "192.0.2.1")
	for _, x := range []struct {
		*node
		want map[string]api.RuleStats
	}{
		{a, map[string]api.RuleStats{"shared": {Allowed: 4, Refused: 1, Bans: 1}, "closed": {Allowed: 1}}},
		{b, map[string]api.RuleStats{"shared": {Refused: 1, Bans: 1}, "closed": {}}},
	} {
		eventually(t, "the rules have counted", func() bool { return x.counted(x.want) })
		if _, text := got(t, x.url+"/v1/status"); !strings.Contains(text, `"held":1,`) {
			t.Errorf("the status does not have the ban: %s", text)
		}
		_, text := got(t, x.url+"/metrics")
		for name, s := range x.want {
			for _, line := range []string{
				fmt.Sprintf(`lately_events_total{outcome="allowed",rule=%q} %d`, name, s.Allowed),
				fmt.Sprintf(`lately_events_total{outcome="refused",rule=%q} %d`, name, s.Refused),
				fmt.Sprintf(`lately_bans{rule=%q} %d`, name, s.Bans), fmt.Sprintf(`lately_limit{rule=%q} 4`, name),
			} {
				if !strings.Contains(text, "\n"+line+"\n") {
					t.Errorf("metrics lack %s", line)
				}
			}
		}
	}
	eventually(t, "the rates are those of the rules", func() bool {
		_, text := got(t, a.url+"/v1/rates?span=1m&points=1&rules=1")
		var list api.RateList
		must.Do(t, json.Unmarshal([]byte(text), &list))
		return len(list.Rates) == 1 && list.Rates[0].Rules["shared"] == api.RuleTotals{Allowed: 4, Refused: 1}
	})
}

// counted reports whether the rules of n have counted want, and lists them otherwise.
func (n *node) counted(want map[string]api.RuleStats) bool {
	_, text := got(n.t, n.url+"/v1/rules")
	var set api.RuleSet
	must.Do(n.t, json.Unmarshal([]byte(text), &set))
	for i := range set.Rules {
		s := set.Rules[i].Stats
		if s == nil {
			return false
		}
		if s.Keys = 0; *s != want[set.Rules[i].Name] {
			n.t.Logf("%s: %+v", set.Rules[i].Name, *s)
			return false
		}
	}
	return len(set.Rules) == len(want)
}

// TestServersShareOutage takes the store away from two servers: each has half of a limit.
func TestServersShareOutage(t *testing.T) {
	t.Parallel()
	redis := redistest.Own(t)
	nodes := []*node{newNode(t, storeOf(redis)), newNode(t, storeOf(redis))}
	for _, n := range nodes {
		n.wantReady(200)
		eventually(t, "the servers know of each other", func() bool { return n.store.Nodes() == len(nodes) })
	}
	redis.Kill()
	for i, n := range nodes {
		for j, want := range []bool{true, true, false} {
			if got := n.take("shared", "192.0.2.1"); got != want {
				t.Errorf("server %d, decision %d: allowed %v, want %v: each has two of four", i, j, got, want)
			}
		}
	}
}
