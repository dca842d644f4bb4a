package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// enforcer returns an Enforcer for bouncers, with a ban of an hour less a moment.
func enforcer(t *testing.T, e *engine.Engine) *enforce.Enforcer {
	t.Helper()
	x := must.Get(enforce.New(enforce.Config{
		Rule:      func(name string) (*ratelimit.Rule, error) { return e.Limiter().Set().Named(name) },
		Protected: func(netip.Prefix) bool { return false },
		Now:       e.Now, MaxNetworks: 100, Targets: enforce.Targets{CrowdSec: true}, Log: slog.New(slog.DiscardHandler),
	}))(t)
	x.Add(flood("203.0.113.99", time.Now().Add(time.Hour-10*time.Millisecond)))
	return x
}

// flood returns a ban that the rule flood began.
func flood(client string, until time.Time) *api.Ban {
	return &api.Ban{Rule: "flood", Key: api.KeyOf(client), Since: time.Now(), Until: until, Source: "rule"}
}

// Bouncers as released: with the requests of go-cs-bouncer (firewall, HAProxy, Caddy), of lua-cs-bouncer (nginx, OpenResty)
// in both modes, and of the plugin of Traefik, each with its token, which needs the role read.
func TestBouncers(t *testing.T) {
	const read, wrong = "a-token-of-bouncers-with-32-chars", "an-unknown-token-that-has-32-chars"
	tokens := must.Get(access.Parse(strings.NewReader("read "+read+" bouncers\n"), "tokens"))(t)
	var x *enforce.Enforcer
	s := newServer(t, func(c *Config) {
		x = enforcer(t, c.Engine)
		c.Enforcer = x
		c.Tokens = func() *access.Tokens { return tokens }
	})
	url := "http://" + serve(t, s)
	get := func(path, agent, token string) (status int, body string) {
		t.Helper()
		r := must.Get(http.NewRequest("GET", url+path, nil))(t)
		r.Header.Set("X-Api-Key", token)
		r.Header.Set("User-Agent", agent)
		w := must.Get(http.DefaultClient.Do(r))(t)
		defer w.Body.Close()
		b := must.Get(io.ReadAll(w.Body))(t)
		return w.StatusCode, string(b)
	}
	stream := func(path, agent string) (deleted, added []string) {
		t.Helper()
		status, body := get(path, agent, read)
		var d struct {
			Deleted, New []struct {
				ID                                             int64
				Duration, Origin, Scenario, Scope, Type, Value string
			}
		}
		if err := json.Unmarshal([]byte(body), &d); err != nil || status != 200 {
			t.Fatalf("%s: %d %s, %v", path, status, body, err)
		}
		for _, x := range d.New {
			left, err := time.ParseDuration(x.Duration) // as go-cs-bouncer's users do
			if err != nil || left <= 0 || x.ID <= 0 || x.Type != "ban" || x.Origin != "crowdsec" || x.Scenario != "lately/flood" {
				t.Errorf("%s: %+v, %v", path, x, err)
			}
			added = append(added, x.Scope+":"+x.Value)
		}
		for _, x := range d.Deleted {
			deleted = append(deleted, x.Scope+":"+x.Value)
		}
		return deleted, added
	}
	want := func(path, agent, want string) {
		t.Helper()
		deleted, added := stream(path, agent)
		if got := fmt.Sprint(deleted, added); got != want {
			t.Errorf("%s of %s: %s, want %s", path, agent, got, want)
		}
	}
	const firewall, nginx, traefik = "crowdsec-firewall-bouncer/v0.0.34-linux-x86_64", "crowdsec-nginx-bouncer/v1.1.3", "Crowdsec-Bouncer-Traefik-Plugin/1.4.6"
	want("/v1/decisions/stream?startup=true&scopes=ip%2Crange", firewall, "[] [Ip:203.0.113.99]")
	want("/v1/decisions/stream?startup=true", nginx, "[] [Ip:203.0.113.99]")
	want("/v1/decisions/stream?startup=true", traefik, "[] [Ip:203.0.113.99]")
	x.Add(flood("2001:db8::/64", time.Now().Add(time.Hour)))
	x.Remove("flood", []string{"203.0.113.99"})
	want("/v1/decisions/stream?scopes=ip%2Crange", firewall, "[Ip:203.0.113.99] [Range:2001:db8::/64]") // false is left out
	want("/v1/decisions/stream?startup=false", nginx, "[Ip:203.0.113.99] [Range:2001:db8::/64]")
	want("/v1/decisions/stream?startup=false", nginx, "[] []")
	want("/v1/decisions/stream?startup=false", traefik, "[Ip:203.0.113.99] [Range:2001:db8::/64]")

	for path, want := range map[string]string{
		"/v1/decisions?ip=203.0.113.99":                 "null", // lua-cs-bouncer compares the body
		"/v1/decisions?ip=203.0.113.99&banned=true":     "null",
		"/v1/decisions?ip=2001:db8::7&contains=true":    `"value":"2001:db8::/64"}]`,
		"/v1/decisions?scope=Range&value=2001:db8::/64": `"value":"2001:db8::/64"}]`,
	} {
		if status, body := get(path, nginx, read); status != 200 || !strings.HasSuffix(body, want) || want == "null" && body != want {
			t.Errorf("%s: %d %q, want %s", path, status, body, want)
		}
	}
	for _, path := range []string{"/v1/decisions", "/v1/decisions/stream?startup=true"} {
		if status, _ := get(path, nginx, wrong); status != 401 {
			t.Errorf("%s with an unknown token: %d", path, status)
		}
	}
	if status, _ := get("/v1/bans", nginx, read); status != 401 {
		t.Errorf("/v1/bans takes X-Api-Key: %d", status)
	}
}

// A server without the setting answers bouncers with how to turn it on.
func TestNoBouncers(t *testing.T) {
	s := newServer(t, nil)
	for _, path := range []string{"/v1/decisions", "/v1/decisions/stream"} {
		if w := ask(s, request{method: "GET", path: path}); w.Code != 404 || !strings.Contains(w.Body.String(), "the setting crowdsec") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
