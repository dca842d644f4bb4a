package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
)

const pastRules = `version: 1
hot:
  - {name: product, key: path, threshold: 20 per 2s, hold: 10s}
  - {name: pair, key: [client, path], threshold: 20 per 2s, hold: 10s}
`

// reportBy counts one record of a process.
func reportBy(t testing.TB, e *engine.Engine, process, rule string, n uint64, key ...string) {
	t.Helper()
	var r hotkeys.Report
	must.Do(t, e.Hot().Begin(&r, rule))
	must.Do(t, r.Add(n, 0, key...))
	r.Count(process)
}

// keyReport returns the report of e about a key under the rule product.
func keyReport(t *testing.T, e *engine.Engine, key string) api.HotKeyReport {
	t.Helper()
	r, err := e.Inspect([]string{"path"}, []string{key})
	if err != nil || len(r.Hot) != 1 || r.Hot[0].Rule != "product" {
		t.Fatalf("%+v, %v; want a report of product", r, err)
	}
	return r.Hot[0]
}

func dayOf(r api.HotKeyReport) (sum uint64, parts int) {
	for _, s := range r.Day {
		sum += s.Count
		if s.Count > 0 {
			parts++
		}
	}
	return sum, parts
}

// A key is hot for 25 minutes, reported by two processes. The uses of a key and of its rule, and the loads that caches
// saved, are kept for a day, also over a restart.
func TestHotPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := engine.Config{Rules: parse(t, pastRules)}
		e := must.Get(engine.New(config))(t)
		defer func() { e.Close() }()
		time.Sleep(time.Second / 3) // events are between samples
		const minutes, each = 25, 10
		for range minutes * 60 {
			reportBy(t, e, "svc-1", "product", 3*each, "/a")
			reportBy(t, e, "svc-2", "product", each, "/a")
			reportBy(t, e, "svc-2", "product", 1, "/cold")
			must.Do(t, e.Hot().CountCache("product", api.CacheCounts{Hits: 30, Misses: 10, Loads: 2, Stale: 1}))
			time.Sleep(time.Second)
		}
		const uses = minutes * 60 * 4 * each
		hot, err := e.Hot().List("product")
		if err != nil || len(hot) != 1 || hot[0].Processes != 2 || hot[0].Rate < 20 || hot[0].Rate > 4*each || hot[0].Hand {
			t.Errorf("hot are %+v, %v; want /a of 2 processes, up to %d a second", hot, err, 4*each)
		}
		r := keyReport(t, e, "/a")
		if p := r.Processes; len(p) != 2 || p[0].Name != "svc-1" || p[1].Name != "svc-2" || p[0].Events < 1750 || p[0].Events > 1800 || p[1].Events < 580 || p[1].Events > 600 {
			t.Errorf("processes are %v, want svc-1 with 1,800 events and svc-2 with 600", p)
		}
		if k := r.Hot; k == nil || r.Span != 2000 || k.Rate != hot[0].Rate || k.Processes != 2 || k.Lo != r.Lo {
			t.Errorf("%+v of %+v", r.Hot, hot)
		}
		sum, parts := dayOf(r)
		if sum < uses/2 || sum > uses*11/10 || parts < 3 || parts > 4 {
			t.Errorf("%d uses in %d parts of the day, want about %d in 3 or 4", sum, parts, uses)
		}
		if cold := keyReport(t, e, "/cold"); cold.Hot != nil || cold.Lo == 0 || len(cold.Processes) != 0 {
			t.Errorf("the cold key: %+v", cold)
		} else if sum, _ := dayOf(cold); sum != 0 {
			t.Errorf("the cold key has %d uses while it was hot", sum)
		}
		e = restart(t, e, config, time.Hour)
		later := keyReport(t, e, "/a")
		if again, _ := dayOf(later); again != sum || later.Hot != nil || len(later.Processes) != 0 {
			t.Errorf("after a restart: %+v, want the day before", later)
		}
		rates, err := e.Rates(24*time.Hour, 24, true)
		var all api.HotTotals
		for _, r := range rates {
			got := r.Hot["product"]
			all.Events += got.Events
			all.Hits += got.Hits
			all.Misses += got.Misses
			all.Loads += got.Loads
			all.Stale += got.Stale
		}
		want := api.HotTotals{Events: uses + minutes*60, CacheCounts: api.CacheCounts{Hits: 30 * 1500, Misses: 10 * 1500, Loads: 2 * 1500, Stale: 1500}}
		if err != nil || all != want || len(rates[0].Rules) != 0 {
			t.Errorf("the day of the rule is %+v, %v; want %+v", all, err, want)
		}
	})
}

// A key of two values, made hot by hand, is found under its rule and no other.
func TestHotPastByHand(t *testing.T) {
	e := newEngine(t, pastRules)
	must.Get(e.Hot().Add("pair", []string{"192.0.2.1", "/a"}, 0))(t)
	r, err := e.Inspect([]string{"client", "path"}, []string{"192.0.2.1", "/a"})
	if err != nil || len(r.Hot) != 1 || r.Hot[0].Hot == nil || !r.Hot[0].Hot.Hand || r.Hot[0].Rule != "pair" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := e.Inspect([]string{"path"}, []string{strings.Repeat("x", keys.Max+1)}); err == nil {
		t.Error("a key that is too long has a report")
	}
}
