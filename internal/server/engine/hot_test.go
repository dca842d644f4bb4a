package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

const hotRules = `version: 1
hot:
  - {name: page, key: path, threshold: 2 per 10s, hold: 1h}
  - {name: blink, key: client, threshold: 1 per 1s, hold: 1s}
`

// hotOf returns the keys that are hot.
func hotOf(e *engine.Engine) []api.HotKey {
	keys, err := e.Hot().List("")
	if err != nil {
		panic(err)
	}
	return keys
}

// Refused requests make no key hot; requests that only a shadow rule refuses, or
// that no rule matches, do.
func TestRefusedEventsAreNotHot(t *testing.T) {
	e := newEngine(t, `version: 1
limits:
  - {name: l, key: client, limit: 2 per 1h, when: {method: GET}}
  - {name: s, key: client, limit: 1 per 1h, mode: shadow}
bans:
  - {name: b, key: client, after: 4 hits in 1h, for: 1h, when: {method: POST}}
hot:
  - {name: page, key: path, threshold: 3 per 1h}
`)
	c := e.Session()
	for range 20 {
		check(t, c, event(c, "method", "GET", "client", "a", "path", "/limited"), 1)
		check(t, c, event(c, "method", "PUT", "client", "c", "path", "/shadow"), 1)
		check(t, c, event(c, "method", "PUT", "path", "/unmatched"), 1)
	}
	for range 6 {
		check(t, c, event(c, "method", "POST", "client", "b", "path", "/1"), 1)
	}
	for range 20 {
		check(t, c, event(c, "method", "POST", "client", "b", "path", "/banned"), 1)
	}
	hot := map[string]bool{}
	for _, k := range hotOf(e) {
		hot[k.Values()[0]] = true
	}
	if got, want := fmt.Sprint(hot), fmt.Sprint(map[string]bool{"/shadow": true, "/unmatched": true, "/1": true}); got != want {
		t.Errorf("these are hot: %s; want %s", got, want)
	}
}

// Paths of 60 KB invented by strangers take little memory: none for a banned client, and as much as short paths for an
// allowed one.
func TestMemoryOfMadeUpPaths(t *testing.T) {
	events := 40_000
	if testing.Short() {
		events = 4000
	}
	e := newEngine(t, `version: 1
bans: [{name: b, key: client, after: 1 hits in 1h, for: 24h, when: {client: 192.0.2.1}}]
hot: [{name: page, key: path, threshold: 100 per 10m}] # no key expires on a slow machine
`)
	c := e.Session()
	path := []byte("/" + strings.Repeat("p", 60_000))
	flood := func(client string) int64 {
		before := heapNow()
		for i := range events {
			copy(path[1:], fmt.Sprintf("%08d", i))
			ev := c.Event()
			ev.SetNamedString("client", client)
			ev.SetNamed("path", path)
			must.Get(c.Check(ev, 1, engine.Terms{}))(t)
		}
		return heapNow() - before
	}
	if banned := flood("192.0.2.1"); banned > 2<<20 {
		t.Errorf("%d paths of a banned client take %d bytes", events, banned)
	}
	if keys := hotStats(e)["page"].Keys; keys > 1 {
		t.Errorf("%d paths of a banned client are counted", keys)
	}
	allowed, stats := flood("192.0.2.2"), hotStats(e)["page"]
	if stats.Keys < events {
		t.Errorf("%+v, want %d keys", stats, events)
	}
	if most := int64(events)*250 + 2<<20; allowed > most || stats.Bytes > most {
		t.Errorf("%d paths take %d bytes, counted %d; want at most %d", events, allowed, stats.Bytes, most)
	}
}

func hotStats(e *engine.Engine) map[string]api.HotRuleStats {
	all, err := e.Hot().Stats("")
	if err != nil {
		panic(err)
	}
	stats := map[string]api.HotRuleStats{}
	for _, r := range all.Rules {
		stats[r.Rule] = r
	}
	return stats
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
