package hotkeys_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

const hotRules = `version: 1
hot:
  - {name: page, key: path, threshold: 2 per 10s, hold: 1h}
  - {name: blink, key: client, threshold: 1 per 1s, hold: 1s}
`

// newKeys returns Keys with the hot rules of a rules file, and where their events go.
func newKeys(t testing.TB, text string) (*hotkeys.Keys, *[]api.Event) {
	t.Helper()
	var published []api.Event
	k := hotkeys.New(hotkeys.Config{Budget: 64 << 20, Now: time.Now, Publish: func(e api.Event) { published = append(published, e) }, Log: slog.New(slog.DiscardHandler)})
	use(t, k, text)
	return k, &published
}

// use puts the hot rules of a rules file in force.
func use(t testing.TB, k *hotkeys.Keys, text string) {
	t.Helper()
	f := must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
	r := must.Get(k.Prepare(f.Hot))(t)
	k.Use(r)
}

// count counts an event with one field.
func count(k *hotkeys.Keys, field, value string) {
	var ev match.Event
	ev.SetNamedString(field, value)
	k.Count(time.Now(), &ev, nil)
}

// saved returns the records that k saves.
func saved(t testing.TB, k *hotkeys.Keys) (records []journal.Record) {
	t.Helper()
	w := state.NewWriter(func(typ byte, data []byte) error {
		records = append(records, journal.Record{Type: typ, Data: slices.Clone(data)})
		return nil
	})
	if k.Save(w, time.Now()); w.Err() != nil {
		t.Fatal(w.Err())
	}
	return records
}

// restored returns Keys under the rules of a file that have restored records.
func restored(t testing.TB, text string, records []journal.Record) *hotkeys.Keys {
	t.Helper()
	k, _ := newKeys(t, text)
	l := state.NewLoader(time.Now)
	for _, r := range records {
		if err := k.Restore(l, r); err != nil {
			t.Fatalf("record %q: %v", r.Type, err)
		}
	}
	must.Do(t, l.Wait())
	return k
}

func wantCode(t *testing.T, err error, code api.Code, words string) {
	t.Helper()
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, words) {
		t.Errorf("got %v, want %s with %q", err, code, words)
	}
}

// heat makes a path hot.
func heat(k *hotkeys.Keys, path string) {
	for range 2 {
		count(k, "path", path)
	}
}

func wantHot(t *testing.T, what string, e *hotkeys.Keys, want ...api.HotKey) {
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
func hotOf(e *hotkeys.Keys) []api.HotKey {
	keys, err := e.List("")
	if err != nil {
		panic(err)
	}
	return keys
}

// A key that is hot after a restart, without a new update, is listed.
func TestHotAfterARestart(t *testing.T) {
	var was []api.HotKey
	var records []journal.Record
	synctest.Test(t, func(t *testing.T) {
		e, _ := newKeys(t, hotRules)
		time.Sleep(2 * time.Hour)
		heat(e, "/gone")
		time.Sleep(30 * time.Minute)
		heat(e, "/a\xff")
		heat(e, "/b")
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
	e, _ := newKeys(t, hotRules)
	heat(e, "/a")
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
		use(t, e, step.text)
		wantHot(t, "under "+step.text, e, step.want...)
	}
}

// However many keys become hot for a moment, one that stays hot is listed.
func TestManyHotKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newKeys(t, hotRules)
		stop := make(chan struct{})
		defer synctest.Wait()
		defer close(stop)
		go e.Run(stop)
		for i := range 2500 {
			if i < 2 {
				count(e, "path", "/a")
			}
			count(e, "client", fmt.Sprint("c", i))
			time.Sleep(time.Second)
		}
		if hot := hotOf(e); len(hot) != 2 || hot[1].Values()[0] != "/a" {
			t.Errorf("these are hot: %v; want /a among them", hot)
		}
	})
	e, _ := newKeys(t, hotRules)
	for i := range 20_000 {
		count(e, "client", fmt.Sprint("c", i))
	}
	if hot := hotOf(e); len(hot) < 3000 || len(hot) > 10_000 || hot[0].Values()[0] != "c19999" {
		t.Errorf("%d are listed; want as many as have memory, the last one among them", len(hot))
	}
}

// All hot rules share one budget, however many they are.
func TestHotBudget(t *testing.T) {
	text := "version: 1\nhot:\n"
	for i := range 8 {
		text += fmt.Sprintf("  - {name: r%d, key: path, threshold: 1000 per 1h}\n", i)
	}
	const budget = 8 << 20
	e := hotkeys.New(hotkeys.Config{Budget: budget, Now: time.Now, Publish: func(api.Event) {}, Log: slog.New(slog.DiscardHandler)})
	use(t, e, text)
	for i := range 60_000 {
		count(e, "path", fmt.Sprint("/", i))
	}
	total, keys, evicted := int64(0), 0, uint64(0)
	for _, h := range hotStats(e) {
		total, keys, evicted = total+h.Bytes, keys+h.Keys, evicted+h.Evicted
	}
	if total > budget || total < budget/4 || evicted == 0 {
		t.Errorf("%d keys of 8 rules take %d bytes; want at most %d, and at least a quarter", keys, total, budget)
	}
}

// Lists, events and snapshots of hot keys have the beginning of a long key, marked as cut.
func TestLongHotKeysAreCut(t *testing.T) {
	var records []journal.Record
	var was []api.HotKey
	path := func(end string) string { return strings.Repeat("p", 1023) + "é" + strings.Repeat("q", 60_000) + end }
	synctest.Test(t, func(t *testing.T) {
		e, published := newKeys(t, hotRules)
		heat(e, path("a"))
		heat(e, path("b"))
		if was = hotOf(e); len(was) != 2 || was[0].Values()[0] == was[1].Values()[0] {
			t.Fatalf("these are hot: %v", was)
		}
		for _, k := range was {
			if v := k.Values()[0]; len(v) > 1200 || !utf8.ValidString(v) || !strings.HasPrefix(v, strings.Repeat("p", 1023)+"… (61026 bytes, SHA-256 ") {
				t.Errorf("a long key is listed with %d bytes: %q", len(v), v)
			}
		}
		if ev := (*published)[0]; ev.Type != api.KeyHot || ev.Values()[0] != was[1].Values()[0] {
			t.Errorf("the event is %+v", ev)
		}
		records = saved(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		wantHot(t, "after a restart", restored(t, hotRules, records), was...)
		time.Sleep(2 * time.Hour)
		wantHot(t, "when the hold is over", restored(t, hotRules, records))
	})
}

// A key that stays over its threshold stays hot: watchers receive an update before its time ends, and never that it is
// cold. When its events end, it is cold within a hold.
func TestSteadyKeyStaysHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newKeys(t, `{version: 1, hot: [{name: page, key: path, threshold: 200 per 2s, hold: 10s}]}`)
		stop := make(chan struct{})
		defer synctest.Wait()
		defer close(stop)
		go e.Run(stop)
		w := must.Get(e.Watch("page"))(t)
		defer w.Close()
		var until time.Time
		read := func() (cold bool) {
			for u := w.Next(); u != nil; u = w.Next() {
				for _, part := range u.Parts() {
					var u api.HotUpdate
					must.Do(t, json.Unmarshal(part, &u))
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
				count(e, "path", "/a")
			}
			time.Sleep(100 * time.Millisecond)
			if cold := read(); cold || time.Since(began) > 3*time.Second && !time.Now().Before(until) {
				t.Fatalf("after %v it is cold for the watcher: received %t, hot until %v, now %v", time.Since(began), cold, until, time.Now())
			}
		}
		time.Sleep(23 * time.Second)
		if !read() || len(hotOf(e)) != 0 {
			t.Error("it stays hot without events")
		}
	})
}

func hotStats(e *hotkeys.Keys) map[string]api.HotRuleStats {
	all, err := e.Stats("")
	if err != nil {
		panic(err)
	}
	stats := map[string]api.HotRuleStats{}
	for _, r := range all.Rules {
		stats[r.Rule] = r
	}
	return stats
}
