package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/ratelimit"
)

const longRules = `version: 1
fields: {tenant: {}}
counters:
  pages: {key: path, spans: [1m]}
limits:
  - {name: user, key: [user, tenant], limit: 2 per 1m}
  - {name: path, key: path, when: {method: POST}, limit: 2 per 1m}
  - {name: agents, key: agent, limit: 2 per 1m, mode: shadow}
hot:
  - {name: page, key: path, threshold: 3 per 2s, hold: 60s}
allow: [10.0.0.0/8]
`

// A value is too long where a rule counts by it, and nowhere else. Nothing is counted
// of an event that has one.
func TestLongValues(t *testing.T) {
	long, fits := strings.Repeat("x", keys.Max+1), strings.Repeat("x", keys.Max)
	for _, c := range []struct {
		fields string
		words  string // of the error, or "" for none
	}{
		{"user a tenant b", ""},
		{"user FITS tenant FITS", ""},
		{"user LONG tenant b", `user: 1025 bytes: must be at most 1024`},
		{"user a tenant LONG", `tenant: 1025 bytes: must be at most 1024`},
		{"tenant LONG", ""}, // the rule does not match: there is no user
		{"path /LONG", ""},  // nor this one: it is not a POST
		{"path /LONG method POST", `path: 1026 bytes: must be at most 1024`},
		{"path /FITS/../x method POST", ""}, // the clean path is counted
		{"agent LONG", ""},                  // a rule in shadow mode refuses nothing
		{"referer LONG other LONG", ""},
		{"client 10.1.2.3 user LONG tenant b", ""}, // on the allow list
	} {
		e := newEngine(t, longRules)
		caller := e.Session()
		fields := strings.Fields(strings.NewReplacer("LONG", long, "FITS", fits).Replace(c.fields))
		for what, ask := range map[string]func() (ratelimit.Decision, error){
			"check": func() (ratelimit.Decision, error) { return caller.Check(event(caller, fields...), 1, engine.Terms{}) },
			"peek":  func() (ratelimit.Decision, error) { return caller.Peek(event(caller, fields...), 1) },
		} {
			d, err := ask()
			if c.words == "" {
				if err != nil || !d.Allowed {
					t.Errorf("%s of %s: %+v, %v", what, c.fields, d, err)
				}
				continue
			}
			wantCode(t, err, api.BadArg, c.words)
			if d.Allowed || !errors.Is(d.Err, ratelimit.ErrKeyTooLong) {
				t.Errorf("%s of %s: %+v", what, c.fields, d)
			}
		}
		if totals := e.Totals(); c.words != "" && totals != (api.Totals{}) {
			t.Errorf("%s: %+v", c.fields, totals)
		}
	}
}

// A log is judged as replay does, whatever its values.
func TestLongValuesOfALog(t *testing.T) {
	e := newEngine(t, longRules)
	c := e.Session()
	ev := []string{"path", "/" + strings.Repeat("x", 5000), "method", "POST"}
	for i, want := range []bool{true, true, false} {
		if d := c.CheckLogged(logged(c, atTime, ev...)); d.Allowed != want {
			t.Errorf("event %d: %+v", i, d)
		}
	}
}

// A key that comes by itself has no value that is too long, either.
func TestLongKeys(t *testing.T) {
	e := newEngine(t, longRules)
	c := e.Session()
	long, fits := strings.Repeat("x", keys.Max+1), strings.Repeat("x", keys.Max)
	asks := map[string]func(path, user, tenant string) error{
		"take": func(_, user, tenant string) error { return second(c.Take("user", 1, user+"\t"+tenant)) },
		"path": func(path, _, _ string) error { return second(c.Take("path", 1, path)) },
		"peek": func(_, user, tenant string) error { return second(c.PeekRule("user", 1, user+"\t"+tenant)) },
		"add":  func(path, _, _ string) error { return c.Add("pages", 1, path) },
		"sum":  func(path, _, _ string) error { _, _, err := sum(c, "pages", path, 0); return err },
		"key":  func(path, _, _ string) error { return second(e.Inspect([]string{"path"}, []string{path})) },
		"keys": func(_, user, tenant string) error {
			return second(e.Inspect([]string{"user", "tenant"}, []string{user, tenant}))
		},
		"ban": func(_, user, tenant string) error {
			return second(e.Bans().Ban("user", []string{user, tenant}, time.Hour, "", ""))
		},
		"unban":    func(_, user, tenant string) error { return second(e.Bans().Unban("user", []string{user, tenant})) },
		"throttle": func(path, _, _ string) error { return second(c.Throttle(path[1:], 1, 1, time.Minute, 1)) },
	}
	for name, ask := range asks {
		user := fits
		if name == "ban" || name == "unban" {
			user = fits[:500] // the bound of a ban's key is on all values together
		}
		if err := ask("/"+fits[1:], user, user); err != nil {
			t.Errorf("%s of values that fit: %.80v", name, err)
		}
		err := ask("/"+long[1:]+"y", "u", long)
		wantCode(t, err, api.BadArg, " bytes: must be at most 1024")
		if field := fmt.Sprint(err); name != "throttle" && !strings.Contains(field, "path: 1026") && !strings.Contains(field, "tenant: 1025") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
