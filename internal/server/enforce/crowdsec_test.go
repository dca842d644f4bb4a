package enforce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// bouncing returns an Enforcer for bouncers, whose clock is now.
func bouncing(t *testing.T, now *time.Time) *Enforcer {
	t.Helper()
	c := config(t)
	c.CrowdSec = true
	c.Now = func() time.Time { return *now }
	return must.Get(New(c))(t)
}

// banAt is banOf at a time.
func banAt(now time.Time, rule, client string, d time.Duration, source string) *api.Ban {
	return &api.Ban{Rule: rule, Key: api.KeyOf(client), Since: now, Until: now.Add(d), Source: source}
}

// query parses a query.
func query(t *testing.T, text string) url.Values {
	t.Helper()
	return must.Get(url.ParseQuery(text))(t)
}

// Bouncers that poll rarely, restart, and miss answers have all current bans after each answer that reaches them.
func TestBouncersAgainstModel(t *testing.T) {
	rng := randtest.New(t)
	for range 20 {
		now := start
		e := bouncing(t, &now)
		m := model{}
		has := []map[string]string{nil, nil, nil} // nil: it has just started
		for range 300 {
			step(rng, e.bans, m, &now)
			e.bans.expire()
			i := rng.IntN(len(has))
			q := query(t, "startup="+map[bool]string{true: "true", false: "false"}[has[i] == nil])
			s, sent, err := e.CrowdSec.Stream(fmt.Sprint("bouncer ", i), q)
			switch {
			case err != nil:
				t.Fatal(err)
			case rng.IntN(5) == 0:
				continue // the answer is lost, and it polls again
			case rng.IntN(20) == 0:
				sent()
				has[i] = nil
				continue
			case has[i] == nil:
				has[i] = map[string]string{}
			}
			sent()
			for _, d := range s.Deleted { // as all bouncers do: first these
				delete(has[i], d.Value)
			}
			for _, d := range s.New {
				has[i][d.Value] = d.Duration
			}
			want := map[string]bool{}
			for network := range m.ends(now) {
				want[network.Addr().String()] = true
			}
			if len(want) != len(has[i]) || !maps.EqualFunc(want, has[i], func(bool, string) bool { return true }) {
				t.Fatalf("bouncer %d has %v, want %v", i, has[i], want)
			}
		}
	}
}

// The decisions have CrowdSec's form, and the filters that bouncers send.
func TestDecisions(t *testing.T) {
	now := start
	e := bouncing(t, &now)
	e.Add(banAt(now, "client", "192.0.2.1", 4*time.Hour-4500*time.Millisecond, "rule"))
	e.Add(banAt(now, "client", "192.0.2.0/24", time.Hour, "http:ada"))
	e.Add(banAt(now, "other", "2001:db8::/64", 300*time.Millisecond, "rule"))
	for _, x := range []struct{ query, want string }{
		{"ip=192.0.2.1", `[{"duration":"3h59m56s","id":2,"origin":"crowdsec","scenario":"lately/client","scope":"Ip","type":"ban","value":"192.0.2.1"},` +
			`{"duration":"1h0m1s","id":3,"origin":"cscli","scenario":"lately/client","scope":"Range","type":"ban","value":"192.0.2.0/24"}]`},
		{"ip=2001:db8::77&banned=true", `[{"duration":"1s","id":4,"origin":"crowdsec","scenario":"lately/other","scope":"Range","type":"ban","value":"2001:db8::/64"}]`},
		{"ip=198.51.100.1", `null`},
		{"", "192.0.2.1 192.0.2.0/24 2001:db8::/64"},
		{"type=ban&scopes=ip,range", "192.0.2.1 192.0.2.0/24 2001:db8::/64"},
		{"type=captcha", "null"},
		{"scope=Ip&value=192.0.2.1", "192.0.2.1"},
		{"scopes=Range", "192.0.2.0/24 2001:db8::/64"},
		{"origins=cscli", "192.0.2.0/24"},
		{"origins=CAPI,crowdsec", "192.0.2.1 2001:db8::/64"},
		{"scenarios_containing=other,ssh", "2001:db8::/64"},
		{"scenarios_not_containing=other", "192.0.2.1 192.0.2.0/24"},
		{"range=192.0.2.0/25", "192.0.2.0/24"},
		{"range=192.0.0.0/16", "null"},
		{"range=192.0.0.0/16&contains=false", "192.0.2.1 192.0.2.0/24"},
		{"ip=ada", "error ip: "},
		{"range=192.0.2.1/24", "error range: "},
		{"range=192.0.2.0/24&contains=perhaps", "error contains: "},
	} {
		list, err := e.CrowdSec.Decisions(query(t, x.query))
		if want, ok := strings.CutPrefix(x.want, "error "); ok || err != nil {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %s", x.query, err, x.want)
			}
			continue
		}
		text := must.Get(json.Marshal(list))(t)
		var values []string
		for _, d := range list {
			values = append(values, d.Value)
		}
		slices.Sort(values)
		want := strings.Fields(x.want)
		slices.Sort(want)
		if string(text) != x.want && !slices.Equal(values, want) {
			t.Errorf("%s:\n%s, want\n%s", x.query, text, x.want)
		}
	}
}

// The stream has new decisions, and those that ended by hand or ran out, separately for each bouncer.
func TestDecisionStream(t *testing.T) {
	now := start
	e := bouncing(t, &now)
	ask := func(bouncer, q string) string {
		t.Helper()
		s, sent, err := e.CrowdSec.Stream(bouncer, query(t, q))
		if err != nil {
			t.Fatal(err)
		}
		sent()
		text := must.Get(json.Marshal(s))(t)
		return string(text)
	}
	want := func(bouncer, q, want string) {
		t.Helper()
		if got := ask(bouncer, q); got != want {
			t.Errorf("%s %s:\n%s, want\n%s", bouncer, q, got, want)
		}
	}
	const none = `{"deleted":[],"new":[]}`
	want("a", "startup=true", none)
	e.Add(banAt(now, "client", "192.0.2.1", time.Hour, "rule"))
	e.Add(banAt(now, "client", "192.0.2.2", 10*time.Second, "rule"))
	const first, second = `{"duration":"1h0m1s","id":2,"origin":"crowdsec","scenario":"lately/client","scope":"Ip","type":"ban","value":"192.0.2.1"}`,
		`{"duration":"11s","id":3,"origin":"crowdsec","scenario":"lately/client","scope":"Ip","type":"ban","value":"192.0.2.2"}`
	want("a", "startup=false&community_pull=true&additional_pull=false", `{"deleted":[],"new":[`+first+`,`+second+`]}`)
	want("a", "", none)
	want("b", "startup=true&scopes=ip,range&origins=crowdsec", `{"deleted":[],"new":[`+first+`,`+second+`]}`)
	now = now.Add(10 * time.Second)
	e.bans.expire()
	e.Remove("client", []string{"192.0.2.1"})
	ended := `{"deleted":[` + strings.Replace(second, "11s", "-1s", 1) + `,` + strings.Replace(first, "1h0m1s", "-1s", 1) + `],"new":[]}`
	want("a", "", ended)
	want("b", "", ended)
	want("b", "", none)
	if _, _, err := e.CrowdSec.Stream("a", query(t, "startup=perhaps")); err == nil {
		t.Error("startup=perhaps has no error")
	}
	for i := range maxBouncers + 10 {
		now = now.Add(time.Millisecond)
		ask(fmt.Sprint("other ", i), "startup=true")
	}
	if n := len(e.CrowdSec.bouncers); n != maxBouncers {
		t.Errorf("%d bouncers are kept, want %d", n, maxBouncers)
	}
}

// FuzzDecisions has queries of any bytes: each is rejected with the name of a parameter, or selects some of all decisions,
// for the requested address.
func FuzzDecisions(f *testing.F) {
	now := func() time.Time { return start }
	b := newBans(10, now)
	for i, network := range []string{"192.0.2.7/32", "192.0.2.0/24", "2001:db8::/64", "2001:db8::1/128"} {
		b.add(netip.MustParsePrefix(network), *banAt(start, fmt.Sprint("Rule ", i), network, time.Hour, []string{ruleSource, "manual"}[i%2]))
	}
	c := &CrowdSec{bans: b, now: now, bouncers: make(map[string]bouncer)}
	all, err := c.Decisions(nil)
	if err != nil || len(all) != 4 {
		f.Fatalf("%v, %v", all, err)
	}
	for _, text := range []string{
		"", "ip=192.0.2.7", "ip=192.0.2.7&contains=false", "range=192.0.2.0%2F24&contains=0", "range=2001:db8::/64", "ip=::ffff:192.0.2.7",
		"scopes=Ip,range&origins=crowdsec", "scope=ip&scenarios_containing=rule+1", "scenarios_not_containing=rule", "type=ban&value=192.0.2.7",
		"contains=perhaps", "ip=192.0.2", "range=192.0.2.0/33", "ip=192.0.2.7%25eth0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		got, err := c.Decisions(q)
		if err != nil {
			if name, _, _ := strings.Cut(err.Error(), ":"); !q.Has(name) {
				t.Errorf("%q: %v: the query has no such parameter", text, err)
			}
			return
		}
		contains := !q.Has("contains") || q.Get("contains") == "" || slices.Contains([]string{"1", "t", "T", "TRUE", "true", "True"}, q.Get("contains"))
		for _, d := range got {
			if !slices.Contains(all, d) {
				t.Errorf("%q: %+v is not among all decisions", text, d)
			}
			asked, err := address.ParsePrefix(q.Get("ip"))
			banned, _ := address.ParsePrefix(d.Value)
			if q.Get("range") == "" && err == nil && contains && (!banned.Contains(asked.Addr()) || banned.Bits() > asked.Bits()) {
				t.Errorf("%q: %s does not contain the address", text, d.Value)
			}
		}
	})
}

// TestCrowdSecWarns expects a warning at the start that a bouncer cuts networks.
func TestCrowdSecWarns(t *testing.T) {
	var log bytes.Buffer
	c := config(t)
	c.CrowdSec, c.Log = true, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := New(c); err != nil || !strings.Contains(log.String(), "refuses only the first address of a network") {
		t.Errorf("%v: %s", err, log.String())
	}
}
