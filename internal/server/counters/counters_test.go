package counters_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
	"github.com/lately-go/lately/window"
)

// newCounters returns the counters of a rules file.
func newCounters(t *testing.T, text string) *counters.Counters {
	t.Helper()
	all := must.Get(counters.New(counters.Config{Now: time.Now}))(t)
	use(t, all, text)
	return all
}

// use puts the counters of a rules file in force.
func use(t *testing.T, all *counters.Counters, text string) {
	t.Helper()
	f := must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
	next, err := all.Prepare(f.Counters)
	if err == nil {
		err = all.Use(next)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sumOf returns the count of a key with one value over the longest span of a counter, or -1 if there is no such counter.
func sumOf(t *testing.T, all *counters.Counters, name, value string) int {
	t.Helper()
	c, err := all.Named(name)
	if err != nil {
		return -1
	}
	key := must.Get(c.Key.Join(nil, value))(t)
	count, _, err := c.Sum(key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return int(count.Lo)
}

// add creates a counter of that name, if there is none, and adds to a key.
func add(t *testing.T, all *counters.Counters, name, value string, n uint64) {
	t.Helper()
	c := must.Get(all.Create(name))(t)
	key, err := c.Key.Join(nil, value)
	if err == nil {
		err = c.Add(key, n)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const twoCounters = "version: 1\ncounters:\n  same: {key: client, spans: [1m]}\n  other: {key: client, spans: [1m]}\n"

// A counter that a reload does not change keeps its counts, and so does a dynamic one, until the rules file declares its name.
func TestUseKeepsCounts(t *testing.T) {
	all := newCounters(t, twoCounters)
	var ev match.Event
	ev.SetNamedString("client", "192.0.2.1")
	for range 3 {
		all.Count(time.Now(), &ev, nil)
	}
	add(t, all, "made", "192.0.2.1", 7)
	got := func() string {
		return fmt.Sprint(sumOf(t, all, "same", "192.0.2.1"), sumOf(t, all, "other", "192.0.2.1"), sumOf(t, all, "made", "192.0.2.1"))
	}
	for _, step := range []struct{ text, want string }{
		{twoCounters, "3 3 7"},
		{"version: 1\ncounters:\n  same: {key: client, spans: [1m]}\n  other: {key: client, spans: [2m]}\n", "3 0 7"},
		{"version: 1\ncounters:\n  same: {key: client, spans: [1m]}\n", "3 -1 7"},
		{"version: 1\ncounters:\n  same: {key: client, spans: [1m]}\n  made: {key: client, spans: [1m]}\n", "3 -1 0"},
		{"version: 1\n", "-1 -1 -1"},
	} {
		if use(t, all, step.text); got() != step.want {
			t.Errorf("under %q the counters have %s, want %s", step.text, got(), step.want)
		}
	}
}

// Dynamic counters are bounded in their number and names.
func TestCreate(t *testing.T) {
	all := newCounters(t, "version: 1\n")
	for i := range counters.MaxDynamic {
		add(t, all, fmt.Sprint("c", i), "k", 1)
	}
	for name, code := range map[string]api.Code{"one-more": api.Overload, "": api.BadArg, "a b": api.BadArg, string(make([]byte, counters.MaxName+1)): api.BadArg} {
		_, err := all.Create(name)
		if e, ok := errors.AsType[*apierror.Error](err); !ok || e.Code != code {
			t.Errorf("%q: %v, want %s", name, err, code)
		}
	}
	if c, err := all.Create("c7"); err != nil || c.Name != "c7" || sumOf(t, all, "c7", "k") != 1 {
		t.Errorf("a counter that is there: %v, %v", c, err)
	}
}

// Saved counts are restored: those of counters with the same fields, and dynamic ones, also without keys.
func TestSaveAndRestore(t *testing.T) {
	all := newCounters(t, twoCounters)
	for _, name := range []string{"same", "other", "made"} {
		add(t, all, name, "192.0.2.1", 5)
	}
	must.Get(all.Create("empty"))(t)
	after := newCounters(t, "version: 1\ncounters:\n  same: {key: client, spans: [1m, 1h]}\n  other: {key: user, spans: [1m]}\n")
	l, total := state.NewLoader(time.Now), window.Imported{}
	w := state.NewWriter(func(_ byte, record []byte) error { return after.Restore(l, &total, slices.Clone(record)) })
	all.Save(w, time.Now())
	must.Do(t, errors.Join(w.Err(), l.Wait()))
	got := fmt.Sprint(sumOf(t, after, "other", "192.0.2.1"), sumOf(t, after, "made", "192.0.2.1"), sumOf(t, after, "empty", "k"))
	c := must.Get(after.Named("same"))(t)
	key := must.Get(c.Key.Join(nil, "192.0.2.1"))(t)
	if minute, _, err := c.Sum(key, time.Minute); got != "0 5 0" || err != nil || minute.Lo != 5 || total.Keys != 2 {
		t.Errorf("%s, a minute of same %+v, %v, %d keys imported; want 0 5 0, 5, and 2 keys", got, minute, err, total.Keys)
	}
	if err := after.Restore(l, &total, []byte("no JSON")); err == nil {
		t.Error("a record other than JSON: no error")
	}
}
