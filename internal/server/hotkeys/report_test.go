package hotkeys_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// report counts one record.
func report(t testing.TB, k *hotkeys.Keys, rule string, n uint64, age time.Duration, key ...string) int {
	t.Helper()
	return reportBy(t, k, "svc-1", rule, n, age, key...)
}

// reportBy is report for a process of that name.
func reportBy(t testing.TB, k *hotkeys.Keys, process, rule string, n uint64, age time.Duration, key ...string) int {
	t.Helper()
	var r hotkeys.Report
	must.Do(t, k.Begin(&r, rule))
	must.Do(t, r.Add(n, age, key...))
	return r.Count(process)
}

// A bruteHot counts events at the later of their own time and the newest of their key.
type bruteHot struct {
	span      time.Duration
	threshold int
	old       bool // the fault: an event of any age is counted
	counted   windowtest.Keys[string]
	true      windowtest.Keys[string]
	hot       map[string]bool
}

// add counts n events of a key at now less age, and reports whether they are counted.
func (b *bruteHot) add(now time.Time, key string, n int, age time.Duration) bool {
	if age >= b.span && !b.old {
		return false
	}
	at := now.Add(-age).UnixNano()
	b.true.Of(key).Add(at, uint64(n))
	at = max(at, b.counted.Of(key).Newest())
	b.counted.Of(key).Add(at, uint64(n))
	if b.counted.Of(key).In(at, int64(b.span)) >= uint64(b.threshold) {
		b.hot[key] = true
	}
	return true
}

// compareReports has an engine and brute force count the same records with ages, and
// returns how they differ. It also checks that no key is hot without enough events in
// the span and the largest age before.
func compareReports(t testing.TB, seed uint64, old bool) (err error) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	threshold := 2 + rnd.IntN(30)
	e, _ := newKeys(t, fmt.Sprintf(`{version: 1, hot: [{name: page, key: path, threshold: %d per 2s, hold: 24h}]}`, threshold))
	b := &bruteHot{2 * time.Second, threshold, old, windowtest.Keys[string]{}, windowtest.Keys[string]{}, map[string]bool{}}
	for step := range 400 {
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		var r hotkeys.Report
		if err := e.Begin(&r, "page"); err != nil {
			return err
		}
		want := 0
		for range 1 + rnd.IntN(10) {
			key, n, age := fmt.Sprint("/", rnd.IntN(12)), 1+rnd.IntN(3), time.Duration(rnd.IntN(120))*time.Millisecond
			if rnd.IntN(5) == 0 {
				age = time.Duration(1900+rnd.IntN(200)) * time.Millisecond
			}
			if err := r.Add(uint64(n), age, key); err != nil {
				return err
			}
			if b.add(time.Now(), key, n, age) {
				want++
			}
		}
		if got := r.Count("svc-1"); got != want {
			return fmt.Errorf("seed %d, step %d: %d records were counted; want %d", seed, step, got, want)
		}
		for _, k := range hotOf(e) {
			key := k.Values()[0]
			if !b.hot[key] {
				return fmt.Errorf("seed %d, step %d: %s is hot, and should not be", seed, step, key)
			}
			if n := b.true.Of(key).In(k.Since.UnixNano(), 2*int64(b.span)); n < uint64(threshold) {
				return fmt.Errorf("seed %d, step %d: %s is hot with %d events in 4 s", seed, step, key, n)
			}
		}
		if got := len(hotOf(e)); got != len(b.hot) {
			return fmt.Errorf("seed %d, step %d: %d keys are hot; want %d", seed, step, got, len(b.hot))
		}
	}
	return nil
}

func TestReportsWithAges(t *testing.T) {
	seed := randtest.Seed(t)
	for i := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			if err := compareReports(t, seed+i, false); err != nil {
				t.Error(err)
			}
		})
	}
	found := 0
	for i := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			if compareReports(t, i, true) != nil {
				found++
			}
		})
	}
	if found < 8 {
		t.Errorf("of 10 engines that should count events of any age, %d were found", found)
	}
}

// Changes by hand survive a restart: keys that were added, and keys that are ignored.
func TestHotChangesByHandAreSaved(t *testing.T) {
	var records []journal.Record
	synctest.Test(t, func(t *testing.T) {
		e, _ := newKeys(t, hotRules)
		must.Get(e.Add("page", []string{"/x/../hand"}, 3*time.Hour))(t)
		heat(e, "/ignored")
		must.Do(t, e.Ignore("page", []string{"/ignored"}, false))
		if hot := hotOf(e); len(hot) != 1 || hot[0].Values()[0] != "/hand" || !hot[0].Until.Equal(time.Now().Add(3*time.Hour)) {
			t.Fatalf("these are hot: %+v", hot)
		}
		records = saved(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		e := restored(t, hotRules, records)
		if hot := hotOf(e); len(hot) != 1 || hot[0].Values()[0] != "/hand" {
			t.Errorf("after a restart these are hot: %+v", hot)
		}
		check := func(what string, want int) {
			t.Helper()
			if got := report(t, e, "page", 5, 0, "/ignored"); got != want {
				t.Errorf("%s, %d records of an ignored key are counted; want %d", what, got, want)
			}
		}
		check("after a restart", 0)
		for _, text := range []string{ // another threshold is another detector
			`{version: 1, hot: [{name: page, key: path, threshold: 9 per 10s, hold: 1h}]}`,
			`{version: 1, hot: [{name: page, key: [path, user], threshold: 9 per 10s}]}`,
		} {
			use(t, e, text)
			if text[60] == '9' {
				check("after a reload", 0)
			}
		}
		if report(t, e, "page", 1, 0, "/ignored", "u") != 1 {
			t.Error("a key of another form is ignored")
		}
		use(t, e, hotRules)
		check("when the rule is back", 0)
		must.Do(t, e.Ignore("page", []string{"/ignored"}, true))
		check("when it is ignored no more", 1)
	})
}

// Keys that are always hot are in the list from the start, follow the rules, and cannot be
// changed by hand.
func TestAlwaysHotKeys(t *testing.T) {
	e, _ := newKeys(t, `{version: 1, hot: [{name: page, key: path, threshold: 2 per 10s, always: [/home], never: [/never]}]}`)
	hot := hotOf(e)
	if len(hot) != 1 || hot[0].Values()[0] != "/home" || !hot[0].Until.IsZero() || hot[0].TTL != 0 {
		t.Fatalf("these are hot: %+v", hot)
	}
	_, removed := e.Remove("page", []string{"/home"})
	wantCode(t, removed, api.BadArg, "always")
	wantCode(t, e.Ignore("page", []string{"/home"}, false), api.BadArg, "always or never")
	wantCode(t, e.Ignore("page", []string{"/never"}, true), api.BadArg, "always or never")
	_, added := e.Add("page", []string{"/never"}, 0)
	wantCode(t, added, api.Conflict, "ignored")
	if ok, err := e.Changed("page", []string{"/home"}); !ok || err != nil {
		t.Errorf("a key that is always hot: %t, %v", ok, err)
	}
	use(t, e, `{version: 1, hot: [{name: page, key: path, threshold: 2 per 10s, always: [/other]}]}`)
	if hot := hotOf(e); len(hot) != 1 || hot[0].Values()[0] != "/other" {
		t.Errorf("these are hot: %+v", hot)
	}
}

// Reports of caches are summed up by span, and kept when the rule changes.
func TestCacheStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newKeys(t, hotRules)
		must.Do(t, e.CountCache("page", api.CacheCounts{Hits: 60, Misses: 40, Loads: 5, Stale: 2}))
		time.Sleep(30 * time.Minute)
		use(t, e, `{version: 1, hot: [{name: page, key: path, threshold: 9 per 10s, hold: 1h}]}`)
		must.Do(t, e.CountCache("page", api.CacheCounts{Hits: 99, Misses: 1, Loads: 1, Stale: 0}))
		r := hotStats(e)["page"]
		want := []api.HotSaved{
			{Span: 60_000, CacheCounts: api.CacheCounts{Hits: 99, Misses: 1, Loads: 1}, Share: 0.99},
			{Span: 3_600_000, CacheCounts: api.CacheCounts{Hits: 159, Misses: 41, Loads: 6, Stale: 2}, Share: 0.795},
			{Span: 86_400_000, CacheCounts: api.CacheCounts{Hits: 159, Misses: 41, Loads: 6, Stale: 2}, Share: 0.795},
		}
		if !slices.Equal(r.Saved, want) || r.Caches != want[2].CacheCounts {
			t.Errorf("%+v; want %+v", r, want)
		}
		time.Sleep(2 * time.Minute)
		if s := hotStats(e)["page"].Saved[0]; s.Hits != 0 || s.Share != 0 {
			t.Errorf("two minutes later: %+v", s)
		}
		wantCode(t, e.CountCache("nosuch", api.CacheCounts{Hits: 1, Misses: 1, Loads: 1, Stale: 1}), api.NoRule, "nosuch")
	})
}
