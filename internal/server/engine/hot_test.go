package engine_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

const hotRules = `version: 1
hot:
  - {name: page, key: path, threshold: 2 per 10s, hold: 1h}
  - {name: blink, key: client, threshold: 1 per 1s, hold: 1s}
`

// heat makes a path hot.
func heat(c *engine.Session, path string) {
	for range 2 {
		c.Check(event(c, "path", path), 1)
	}
}

func wantHot(t *testing.T, what string, e *engine.Engine, want ...api.HotKey) {
	t.Helper()
	text := func(keys []api.HotKey) (all []string) { // without what changes as time goes on
		for _, k := range keys {
			all = append(all, fmt.Sprintf("%s %q %v to %v", k.Rule, k.Values(), k.Since, k.Until))
		}
		return all
	}
	if got, want := text(hotOf(e)), text(want); !slices.Equal(got, want) {
		t.Errorf("%s these are hot: %q; want %q", what, got, want)
	}
}

// hotOf returns the keys that are hot.
func hotOf(e *engine.Engine) []api.HotKey {
	keys, err := e.Hot("")
	if err != nil {
		panic(err)
	}
	return keys
}

// A key that a restart leaves hot, and that so is not told again, is listed.
func TestHotAfterARestart(t *testing.T) {
	var was []api.HotKey
	var records []record
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, hotRules)
		defer synctest.Wait()
		time.Sleep(2 * time.Hour)
		heat(e.Session(), "/gone")
		time.Sleep(30 * time.Minute)
		heat(e.Session(), "/a\xff")
		heat(e.Session(), "/b")
		time.Sleep(30 * time.Minute)
		if was = hotOf(e); len(was) != 2 || was[0].Values()[0] != "/b" || was[1].Values()[0] != "/a\xff" {
			t.Fatalf("these are hot: %v", was)
		}
		records = saved(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(3 * time.Hour)
		wantHot(t, "after a restart", restored(t, hotRules, records), was...)
		other := restored(t, `{version: 1, hot: [{name: page, key: client, threshold: 2 per 10s, hold: 1h}]}`, records)
		wantHot(t, "under a rule with another key", other)
		time.Sleep(30 * time.Minute)
		wantHot(t, "when the hold is over", restored(t, hotRules, records))
	})
	synctest.Test(t, func(t *testing.T) { // the clock was set back by two hours
		for i := range was {
			was[i].Since, was[i].Until = was[i].Since.Add(-2*time.Hour), was[i].Until.Add(-2*time.Hour)
		}
		time.Sleep(time.Hour)
		wantHot(t, "by a clock that was set back", restored(t, hotRules, records), was...)
	})
}

// Keys are hot under the rules in force, and under no others.
func TestHotUnderOtherRules(t *testing.T) {
	e := newEngine(t, hotRules)
	heat(e.Session(), "/a")
	was := hotOf(e)
	if len(was) != 1 {
		t.Fatalf("these are hot: %v", was)
	}
	for _, step := range []struct {
		text string
		want []api.HotKey
	}{
		{`{version: 1, hot: [{name: page, key: path, threshold: 2 per 10s, hold: 1h}]}`, was},
		{`{version: 1, hot: [{name: page, key: path, threshold: 9 per 10s, hold: 1h}]}`, nil},
		{hotRules, nil},
	} {
		if _, err := e.Replace(parse(t, step.text), true); err != nil {
			t.Fatal(err)
		}
		wantHot(t, "under "+step.text, e, step.want...)
	}
}

// However many keys become hot for a moment, one that stays hot is listed.
func TestManyHotKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, hotRules)
		defer synctest.Wait()
		c := e.Session()
		for i := range 2500 {
			if i < 2 {
				check(t, c, event(c, "path", "/a"), 1)
			}
			check(t, c, event(c, "client", fmt.Sprint("c", i)), 1)
			time.Sleep(time.Second)
		}
		if hot := hotOf(e); len(hot) != 2 || hot[1].Values()[0] != "/a" {
			t.Errorf("these are hot: %v; want /a among them", hot)
		}
	})
	e := newEngine(t, hotRules)
	c := e.Session()
	for i := range 20_000 {
		check(t, c, event(c, "client", fmt.Sprint("c", i)), 1)
	}
	if hot := hotOf(e); len(hot) < 3000 || len(hot) > 10_000 || hot[0].Values()[0] != "c19999" {
		t.Errorf("%d are listed; want as many as have memory, the last one among them", len(hot))
	}
}

// All hot rules share one budget, however many they are.
func TestHotBudget(t *testing.T) {
	rules := "version: 1\nhot:\n"
	for i := range 8 {
		rules += fmt.Sprintf("  - {name: r%d, key: path, threshold: 1000 per 1h}\n", i)
	}
	const budget = 8 << 20
	e, err := engine.New(engine.Config{HotBudget: budget, Rules: parse(t, rules)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := e.Session()
	for i := range 60_000 {
		c.Check(event(c, "path", fmt.Sprint("/", i)), 1)
	}
	total, keys, evicted := int64(0), 0, uint64(0)
	for _, h := range hotStats(e) {
		total, keys, evicted = total+h.Bytes, keys+h.Keys, evicted+h.Evicted
	}
	if total > budget || total < budget/4 || evicted == 0 {
		t.Errorf("%d keys of 8 rules take %d bytes; want at most %d, and at least a quarter", keys, total, budget)
	}
}

// Requests that a limit or a ban refuses make nothing hot; those that are refused in
// shadow mode only, or that no rule is about, do.
func TestRefusedMakeNothingHot(t *testing.T) {
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

// Paths of 60 KB that strangers make up take little memory: a banned client's none,
// and those of one that is allowed what short ones do.
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
			if _, err := c.Check(ev, 1); err != nil {
				t.Fatal(err)
			}
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
	all, err := e.HotStats("")
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

// Lists, events and snapshots of hot keys have the beginning of a long one, and say
// that it is not all.
func TestLongHotKeysAreCut(t *testing.T) {
	var records []record
	var was []api.HotKey
	path := func(end string) string { return strings.Repeat("p", 1023) + "é" + strings.Repeat("q", 60_000) + end }
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, hotRules)
		defer synctest.Wait()
		sub := e.Subscribe()
		defer sub.Close()
		heat(e.Session(), path("a"))
		heat(e.Session(), path("b"))
		if was = hotOf(e); len(was) != 2 || was[0].Values()[0] == was[1].Values()[0] {
			t.Fatalf("these are hot: %v", was)
		}
		for _, k := range was {
			if v := k.Values()[0]; len(v) > 1200 || !utf8.ValidString(v) || !strings.HasPrefix(v, strings.Repeat("p", 1023)+"… (61026 bytes, SHA-256 ") {
				t.Errorf("a long key is listed with %d bytes: %q", len(v), v)
			}
		}
		if ev := next(t, sub); ev.Type != api.KeyHot || ev.Values()[0] != was[1].Values()[0] {
			t.Errorf("the event is %s", ev.JSON)
		}
		records = saved(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		wantHot(t, "after a restart", restored(t, hotRules, records), was...)
		time.Sleep(2 * time.Hour)
		wantHot(t, "when the hold is over", restored(t, hotRules, records))
	})
}

// A key that stays over its threshold stays hot: watchers are told before its time is
// over, and never that it is cold. When its events end, it is cold within a hold.
func TestSteadyKeyStaysHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Config{Rules: parse(t, `{version: 1, hot: [{name: page, key: path, threshold: 200 per 2s, hold: 10s}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		defer synctest.Wait()
		defer e.Close()
		w, err := e.WatchHot("page")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		s := e.Session()
		var until time.Time
		read := func() (cold bool) {
			for u := w.Next(); u != nil; u = w.Next() {
				for _, part := range u.Parts() {
					var u api.HotUpdate
					if err := json.Unmarshal(part, &u); err != nil {
						t.Fatal(err)
					}
					for _, k := range u.Hot {
						until = k.Until
					}
					cold = cold || len(u.Cold) > 0
				}
			}
			return cold
		}
		began := time.Now()
		for time.Since(began) < 10*time.Minute { // 1.2 times the threshold, in batches of 100 ms
			for range 12 {
				check(t, s, event(s, "path", "/a"), 1)
			}
			time.Sleep(100 * time.Millisecond)
			if cold := read(); cold || time.Since(began) > 3*time.Second && !time.Now().Before(until) {
				t.Fatalf("after %v it is cold for the watcher: told %t, hot until %v, now %v", time.Since(began), cold, until, time.Now())
			}
		}
		time.Sleep(23 * time.Second)
		if !read() || len(hotOf(e)) != 0 {
			t.Error("it stays hot without events")
		}
	})
}
