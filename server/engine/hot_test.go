package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/server/engine"
)

const hotRules = `version: 1
hot:
  - {name: page, key: path, threshold: 2 per 10s, hold: 1h}
  - {name: blink, key: client, threshold: 1 per 1s, hold: 1s}
`

// heat makes a path hot.
func heat(c *engine.Caller, path string) {
	for range 2 {
		c.Check(event(c, "path", path), 1)
	}
}

func wantHot(t *testing.T, what string, e *engine.Engine, want ...engine.HotKey) {
	t.Helper()
	if got, want := fmt.Sprint(e.Hot()), fmt.Sprint(want); got != want {
		t.Errorf("%s these are hot: %s; want %s", what, got, want)
	}
}

// A key that a restart leaves hot, and that so is not told again, is listed.
func TestHotAfterARestart(t *testing.T) {
	var was []engine.HotKey
	var records []record
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, hotRules)
		defer synctest.Wait()
		time.Sleep(2 * time.Hour)
		heat(e.Caller(), "/gone")
		time.Sleep(30 * time.Minute)
		heat(e.Caller(), "/a\xff")
		heat(e.Caller(), "/b")
		time.Sleep(30 * time.Minute)
		if was = e.Hot(); len(was) != 2 || was[0].Key[0] != "/b" || was[1].Key[0] != "/a\xff" {
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
	heat(e.Caller(), "/a")
	was := e.Hot()
	if len(was) != 1 {
		t.Fatalf("these are hot: %v", was)
	}
	for _, step := range []struct {
		text string
		want []engine.HotKey
	}{
		{`{version: 1, hot: [{name: page, key: path, threshold: 2 per 10s, hold: 1h}]}`, was},
		{`{version: 1, hot: [{name: page, key: path, threshold: 9 per 10s, hold: 1h}]}`, nil},
		{hotRules, nil},
	} {
		if err := e.Reload(parse(t, step.text)); err != nil {
			t.Fatal(err)
		}
		wantHot(t, "under "+step.text, e, step.want...)
	}
}

// However many keys become hot for a moment, one that stays hot is listed.
func TestManyHotKeys(t *testing.T) {
	e := newEngine(t, hotRules)
	c := e.Caller()
	at := time.Unix(1_750_000_000, 0)
	for i := range 2500 {
		if i < 2 {
			c.CheckAt(at, event(c, "path", "/a"), 1)
		}
		c.CheckAt(at.Add(time.Duration(i)*time.Second), event(c, "client", fmt.Sprint("c", i)), 1)
	}
	if hot := e.Hot(); len(hot) != 2 || hot[1].Key[0] != "/a" {
		t.Errorf("these are hot: %v; want /a among them", hot)
	}
	e = newEngine(t, hotRules)
	c = e.Caller()
	for i := range 2500 {
		c.CheckAt(at, event(c, "client", fmt.Sprint("c", i)), 1)
	}
	if hot := e.Hot(); len(hot) < 900 || len(hot) > 1000 || hot[0].Key[0] != "c2499" {
		t.Errorf("%d are listed; want the last 900 to 1000", len(hot))
	}
}
