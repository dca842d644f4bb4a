package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/browsertest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

const fleetRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 40 per 10s}
  - {name: search, key: client, when: {path: /search}, limit: 2 per 1s, algorithm: gcra, mode: shadow}
  - {name: downloads, key: client, when: {path: /download}, limit: 3 at once for 1h, algorithm: in-flight}
  - {name: api-month, key: user, limit: 100000 per month, algorithm: calendar, zone: Europe/Vienna}
  - {name: login, key: client, when: {path: /login}, limit: 5 per 10m, ban: {after: 20 refusals in 10m, for: 1h, factor: 2, max: 1d}}
bans:
  - {name: scan, key: client/24, when: {path: /scan}, after: 5 hits in 1h, for: [1h, 1d]}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 30 per 2s, hold: 60s}
`

// TestConcurrentFleet has three servers with one Redis under traffic: the console of the third lists the bans that began on
// each of them. With LATELY_PICTURES, the name of a folder, it writes the pictures of the guide about three servers.
func TestConcurrentFleet(t *testing.T) {
	if pictures := os.Getenv("LATELY_PICTURES"); pictures != "" {
		folder := must.Get(filepath.Abs(pictures))(t)
		t.Setenv("LATELY_SCREENSHOTS", folder)
	}
	redis := redistest.Own(t)
	b := browsertest.Start(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(rules, []byte(fleetRules), 0o600))
	var servers [3]*server.Server
	var url string
	for i := range servers {
		servers[i], url = runServer(t, server.Config{RulesFiles: []string{rules}, Store: "unix://" + redis.Socket() + "?dial_timeout=1m&write_timeout=1m", StoreTimeout: 10 * time.Second, RESP: server.Off, HTTP: "127.0.0.1:0"})
	}
	check := func(server int, client, path string) {
		c := servers[server].Engine().Session()
		ev := c.Event()
		ev.SetNamedString("client", client)
		ev.SetNamedString("path", path)
		if _, err := c.Check(ev, 1, engine.Terms{}); err != nil {
			t.Error(err)
		}
	}
	for n := range 26 { // each server sees too few of them
		check(n%3, "203.0.113.77", "/login")
	}
	for n := range 7 {
		check(n%3, fmt.Sprint("198.51.100.", n), "/scan")
	}
	must.Get(servers[0].Engine().Bans().Ban("per-client", []string{"192.0.2.66"}, time.Hour, "abuse report", ""))(t)
	replaySample(t, servers[2].Engine(), 1000, time.Second)
	p := b.Open(t, url+"/#/bans", 1280, 800)
	p.Wait(`[...document.querySelectorAll('tr.ban')].map((e) => e.textContent).filter((s) => /203\.0\.113\.77|198\.51\.100\.0\/24|192\.0\.2\.66/.test(s)).length === 3`)
	for _, scheme := range []string{"dark", "light"} {
		p.Media("prefers-color-scheme: "+scheme, "prefers-reduced-motion: reduce")
		p.Picture("fleet-" + scheme)
	}
	p.Clean()
}
