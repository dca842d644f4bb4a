package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

// The answer to a ban by hand is the ban in force: a longer ban stays, and is not
// published again.
func TestBanBesideALonger(t *testing.T) {
	e := newEngine(t, someRules)
	sub := e.Subscribe()
	defer sub.Close()
	for _, step := range []struct {
		d, want time.Duration
		reason  string // of the ban that holds
		told    int
	}{
		{time.Minute, time.Minute, "1m0s", 1},
		{time.Hour, time.Hour, "1h0m0s", 1},
		{time.Minute, time.Hour, "1h0m0s", 0},
	} {
		r, err := e.Bans().Ban("per-client", []string{"192.0.2.1"}, step.d, step.d.String(), "")
		if err != nil || r.Reason != step.reason || r.Until.Sub(r.Since) != step.want {
			t.Errorf("ban for %v: %+v, %v; want the one for %v", step.d, r, err, step.want)
		}
		if n := told(sub); n != step.told {
			t.Errorf("ban for %v: %d were published, want %d", step.d, n, step.told)
		}
	}
	c := e.Session()
	for range 6 {
		check(t, c, event(c, "client", "192.0.2.2"), 1)
	}
	if r, err := e.Bans().Ban("per-client", []string{"192.0.2.2"}, time.Hour, "", ""); err != nil || r.Count != 1 {
		t.Errorf("after a ban that a rule began: %+v, %v; want the count 1", r, err)
	}
}

// A ban by hand is of any client that an event may have, except one that looks like an address
// that was mistyped: no event would be refused for it.
func TestBanOfClients(t *testing.T) {
	e := newEngine(t, someRules)
	for _, c := range []struct {
		rule, client, want string // "" for none
	}{
		{"per-client", "192.0.2.1", ""},
		{"per-client", "[2001:db8::1]:443", ""},
		{"per-client", "2001:db8:0:1::/64", ""}, // in its listed form
		{"per-client", "proxy:192.0.2.1", ""},
		{"per-client", "192.0.2.0/24", ""},
		{"per-client", "2001:db8::/48", ""},
		{"per-client", "192.0.2.1/32", `not a network of several clients`},
		{"per-client", "0.0.0.0/0", `too many clients: must be /8 or longer`},
		{"per-client", "2001:db8::/72", `must be an address, or shorter than /64; 2001:db8:: bans 2001:db8::/64`},
		{"per-client", "192.0.2.1\n", `client: "192.0.2.1\n": must be an address`},
		{"per-client", "192.0.2", `must be an address`},
		{"per-client", "192.0.2.300", `must be an address such as 192.0.2.1`},
		{"per-client", "192.0.2.0/33", `or a name that does not look like one`},
		{"per-client", "2001:db8::1 ", `must be an address`},
		{"per-client", "2001:db8::/129", `must be an address`},
		{"per-client", "bob", ""}, // a name, as TAKE takes it
		{"per-client", "12345", ""},
		{"per-client", "api.example.org", ""},
		{"per-client", "unknown", ""},
		{"login", "192.0.2.0/24", `networks cannot be banned`},
	} {
		key := []string{c.client}
		if c.rule == "login" {
			key = append(key, "root")
		}
		_, err := e.Bans().Ban(c.rule, key, time.Hour, "", "")
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.client, err)
			}
			continue
		}
		wantCode(t, err, api.BadArg, c.want)
	}
	if _, err := e.Bans().Ban("flood", []string{"192.0.2.0/24"}, time.Hour, "", ""); err != nil {
		t.Errorf("a user of that name: %v", err)
	}
}

// The same for a client that is one alternative of a key.
func TestBanOfAlternatives(t *testing.T) {
	e := newEngine(t, "version: 1\nlimits: [{name: guess, key: user | client, limit: 5 per 10m}]")
	for key, want := range map[string]string{
		"user:bob": "", "user:192.0.2.0/24": "", "client:2001:db8::1": "", "client:[192.0.2.1]:80": "",
		"client:192.0.2.0/24": "networks cannot be banned", "client:bob": "", "client:192.0.2": "must be an address",
		"bob": "must be user:VALUE or client:VALUE", "host:x": "must be user:VALUE or client:VALUE",
	} {
		_, err := e.Bans().Ban("guess", []string{key}, time.Hour, "", "")
		if want != "" {
			wantCode(t, err, api.BadArg, want)
		} else if err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// A ban in a journal of before that no event would meet does not end the start.
func TestRestoreBanOfANetwork(t *testing.T) {
	e := newEngine(t, someRules)
	r := e.Restorer()
	until := e.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	for _, key := range []string{"192.0.2.0/1", "192.0.2.1"} {
		if err := r.Record(journal.Record{Type: 'b', Data: fmt.Appendf(nil, `{"ban":{"rule":"per-client","key":[%q],"until":%q}}`, key, until)}); err != nil {
			t.Error(err)
		}
	}
	if got := banned(t, e); !slices.Equal(got, []string{"per-client 192.0.2.1"}) {
		t.Errorf("%q", got)
	}
}

// A client that is a name is banned, refused, listed and unbanned like an address.
func TestBanOfAName(t *testing.T) {
	e := newEngine(t, someRules)
	must.Get(e.Bans().Ban("per-client", []string{"bob"}, time.Hour, "", ""))(t)
	if got := banned(t, e); !slices.Equal(got, []string{"per-client bob"}) {
		t.Errorf("the bans are %q", got)
	}
	if d, err := e.Session().Take("per-client", 1, "bob"); err != nil || d.Allowed {
		t.Errorf("a request of bob: %+v, %v", d, err)
	}
	if n, err := e.Bans().Unban("per-client", []string{"bob"}); n != 1 || err != nil {
		t.Errorf("unban: %v, %v", n, err)
	}
	if d, err := e.Session().Take("per-client", 1, "bob"); err != nil || !d.Allowed {
		t.Errorf("a request of bob after the end: %+v, %v", d, err)
	}
}

// To unban an address ends its ban as a proxy too: requests that it sent without naming their
// client are of proxy:ADDRESS.
func TestUnbanOfProxies(t *testing.T) {
	e := newEngine(t, someRules)
	for _, banned := range [][]string{{"proxy:192.0.2.7"}, {"192.0.2.7"}, {"192.0.2.7", "proxy:192.0.2.7"}, {"proxy:2001:db8::7"}, {"proxy:192.0.2.8"}} {
		for _, client := range banned {
			must.Get(e.Bans().Ban("per-client", []string{client}, time.Hour, "", ""))(t)
		}
		want := len(banned)
		if banned[0] == "proxy:192.0.2.8" { // another
			want = 0
		}
		address := "192.0.2.7"
		if banned[0] == "proxy:2001:db8::7" {
			address = "2001:DB8:0::7"
		}
		if n, err := e.Bans().Unban("per-client", []string{address}); n != want || err != nil {
			t.Errorf("%q: %d bans ended, %v; want %d", banned, n, err, want)
		}
	}
	must.Get(e.Bans().Ban("login", []string{"proxy:192.0.2.9", "root"}, time.Hour, "", ""))(t)
	if n, err := e.Bans().Unban("login", []string{"192.0.2.9", "root"}); n != 1 || err != nil {
		t.Errorf("a key of two fields: %d bans ended, %v", n, err)
	}
}

// Only limits and bans have bans: the error for a hot rule gives its kind.
func TestBanUnderHotRule(t *testing.T) {
	e := newEngine(t, hotRules)
	const want = `rule "page" is a hot rule, which neither limits nor bans: must be a limit or a ban`
	_, err := e.Bans().Ban("page", []string{"/a"}, time.Hour, "", "")
	wantCode(t, err, api.NoRule, want)
	_, err = e.Bans().Unban("page", []string{"/a"})
	wantCode(t, err, api.NoRule, want)
	_, err = e.Bans().UnbanAll(api.BanFilter{Rule: "page"})
	wantCode(t, err, api.NoRule, want)
	_, err = e.Bans().Page(bans.Query{Rule: "page"})
	wantCode(t, err, api.NoRule, want)
	_, err = e.Session().Take("page", 1, "/a")
	wantCode(t, err, api.NoRule, want)
}
