package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/ratelimit"
)

// atTime is an event time of the past.
var atTime = time.Unix(1_700_000_000, 0)

// liveVerbs is all that counts or changes something now.
var liveVerbs = map[string]func(e *engine.Engine, c *engine.Session) error{
	"check": func(_ *engine.Engine, c *engine.Session) error {
		_, err := c.Check(event(c, "client", "192.0.2.1"), 1)
		return err
	},
	"take": func(_ *engine.Engine, c *engine.Session) error {
		_, err := c.Take("per-client", 1, "192.0.2.1")
		return err
	},
	"take 2": func(_ *engine.Engine, c *engine.Session) error {
		_, err := c.Take("per-client", 2, "192.0.2.1")
		return err
	},
	"refund": func(_ *engine.Engine, c *engine.Session) error {
		_, err := c.Refund("per-client", 1, "192.0.2.1")
		return err
	},
	"reset": func(_ *engine.Engine, c *engine.Session) error { return c.Reset("per-client", "192.0.2.1") },
	"throttle": func(_ *engine.Engine, c *engine.Session) error {
		_, err := c.Throttle("k", 1, 1, time.Minute, 1)
		return err
	},
	"add":                  func(_ *engine.Engine, c *engine.Session) error { return c.Add("requests", 1, "192.0.2.1") },
	"add to a new counter": func(_ *engine.Engine, c *engine.Session) error { return c.Add("made", 1, "k") },
	"ban": func(e *engine.Engine, _ *engine.Session) error {
		_, err := e.Ban("flood", []string{"eve"}, time.Hour, "", "")
		return err
	},
	"unban": func(e *engine.Engine, _ *engine.Session) error {
		_, err := e.Unban("flood", []string{"eve"})
		return err
	},
	"restore": func(e *engine.Engine, _ *engine.Session) error {
		return e.Restorer().Record(journal.Record{Type: 't'}) // of a counter that there is not any more
	},
	"restore a ban": func(e *engine.Engine, _ *engine.Session) error {
		return e.Restorer().Ban([]byte(`{"ban":{"rule":"flood","key":["eve"],"until":"2100-01-01T00:00:00Z"}}`))
	},
}

// A live engine rejects events with their time, and does all else.
func TestLive(t *testing.T) {
	for name, verb := range liveVerbs {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, someRules)
			c := e.Session()
			if err := verb(e, c); err != nil && !strings.Contains(err.Error(), "until") {
				t.Fatal(err)
			}
			_, err := c.CheckAt(atTime, event(c, "client", "192.0.2.1"), 1)
			wantCode(t, err, api.BadArg, "AT: this server judges by its own clock")
			if e.Status().EventTime {
				t.Error("it judges by event time")
			}
		})
	}
}

// An engine that judges by event time is changed by nothing else.
func TestEventTimeOnly(t *testing.T) {
	e := newEventEngine(t, someRules)
	c := e.Session()
	if _, err := c.CheckAt(atTime, event(c, "client", "192.0.2.1"), 1); err != nil {
		t.Fatal(err)
	}
	for name, verb := range liveVerbs {
		if err := verb(e, c); err == nil {
			t.Errorf("%s is done", name)
		} else {
			wantCode(t, err, api.BadArg, "judges by the times of events")
		}
	}
	if d, err := c.PeekRule("per-client", 1, "192.0.2.1"); err != nil || d.Remaining != 1 {
		t.Errorf("%+v, %v; one was counted", d, err)
	}
	n := 0
	for _, i := range e.Counters() {
		n++
		if i.Dynamic {
			t.Errorf("counter %s was made", i.Name)
		}
	}
	for b := range e.Bans() {
		t.Errorf("a ban: %+v", b)
	}
	if n != 2 {
		t.Errorf("%d counters", n)
	}
}

// Queries in event time are answered as of the newest event.
func TestQuestionsByTheClock(t *testing.T) {
	e := newEventEngine(t, someRules)
	c := e.Session()
	ask := func(at time.Time, used uint64) {
		t.Helper()
		if d, err := c.Peek(event(c, "client", "192.0.2.1"), 1); err != nil || d.Remaining != 2-used {
			t.Errorf("peek: %+v, %v; %d were counted", d, err, used)
		}
		if d, err := c.PeekRule("per-client", 1, "192.0.2.1"); err != nil || d.Remaining != 2-used {
			t.Errorf("peek by rule: %+v, %v; %d were counted", d, err, used)
		}
		if lo, _, err := sum(c, "requests", "192.0.2.1", time.Minute); err != nil || lo != used {
			t.Errorf("sum: %d, %v; %d were counted", lo, err, used)
		}
		if top, err := e.Top("requests", 5, 0, engine.KeyFilter{}); err != nil || len(top) != min(1, int(used)) {
			t.Errorf("top: %+v, %v", top, err)
		}
		r, err := e.Inspect([]string{"client"}, []string{"192.0.2.1"})
		if err != nil || r.Counters[1].Lo != used || r.Rules[0].Decision.Remaining != 2-used {
			t.Errorf("key: %+v, %v", r, err)
		}
		if now := e.Status().Now; !at.IsZero() && now != api.Millis(at.UnixMilli()) {
			t.Errorf("now is %v; want %v", now, at)
		}
	}
	ask(time.Time{}, 0)
	if err := e.Save(e.Now(), func(byte, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		at := atTime.Add(time.Duration(i)*time.Second + 999*time.Millisecond)
		if _, err := c.CheckAt(at, event(c, "client", "192.0.2.1"), 1); err != nil {
			t.Fatal(err)
		}
		ask(at, uint64(i+1))
	}
	if _, err := c.CheckAt(atTime, event(c, "user", "bob"), 1); err != nil { // it comes late
		t.Fatal(err)
	}
	ask(atTime.Add(1999*time.Millisecond), 2)
	if _, err := c.CheckAt(atTime.Add(time.Hour), event(c, "user", "bob"), 1); err != nil {
		t.Fatal(err)
	}
	ask(atTime.Add(time.Hour), 0)
}

// Bans of event time are listed as long as they hold by it.
func TestBansByTheClock(t *testing.T) {
	e := newEventEngine(t, someRules)
	c := e.Session()
	for range 7 {
		if _, err := c.CheckAt(atTime, event(c, "user", "eve"), 1); err != nil {
			t.Fatal(err)
		}
	}
	list := func(want int) {
		t.Helper()
		page, err := e.BanPage(ratelimit.BanQuery{Limit: 10})
		if err != nil || page.Total != want || len(page.Bans) != want {
			t.Errorf("%+v, %v; want %d", page, err, want)
		}
		r, err := e.Inspect([]string{"user"}, []string{"eve"})
		if err != nil || len(r.Bans) != want {
			t.Errorf("%+v, %v; want %d", r.Bans, err, want)
		}
	}
	list(1)
	if _, err := c.CheckAt(atTime.Add(59*time.Minute), event(c, "user", "bob"), 1); err != nil {
		t.Fatal(err)
	}
	list(1)
	if _, err := c.CheckAt(atTime.Add(time.Hour), event(c, "client", "10.0.0.1"), 1); err != nil {
		t.Fatal(err)
	}
	list(0)
}

// newEventEngine returns an engine that judges by the times of events.
func newEventEngine(t *testing.T, text string) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Rules: parse(t, text), EventTime: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func second[T any](_ T, err error) error { return err }

// A reload leaves the clock as it is.
func TestReloadInEventTime(t *testing.T) {
	e := newEventEngine(t, someRules)
	c := e.Session()
	if _, err := e.Replace(parse(t, someRules), true); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := e.Replace(parse(t, someRules+strings.Repeat(" ", i)), true); err != nil {
			t.Fatal(err)
		}
		d, err := c.CheckAt(atTime.Add(time.Duration(i)*time.Second), event(c, "client", "192.0.2.1"), 1)
		if got, want := fmt.Sprint(d.Allowed, d.Remaining, err), []string{"true 2 <nil>", "true 1 <nil>", "true 0 <nil>", "false 0 <nil>"}[i]; got != want {
			t.Errorf("event %d: %s; want %s", i, got, want)
		}
	}
}
