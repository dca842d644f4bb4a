package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

func explain(t *testing.T, e *engine.Engine, values ...string) api.Explanation {
	t.Helper()
	return must.Get(e.Explain(values...))(t)
}

// Explain has what a key was refused for, and what its rule decides now.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, refusingRules)
		began := time.Now().UTC()
		c := e.Session()
		for i, path := range []string{"/", "/a?secret", "/b", "/", "/c"} { // refused but for the first, under per-client only "/"
			ev := event(c, "client", "192.0.2.1", "user", "ada", "method", "GET", "host", "example.org", "path", path)
			eventfield.SplitPath(ev)
			if d := check(t, c, ev, 1); d.Allowed != (i == 0) {
				t.Fatalf("event %d: %+v", i, d)
			}
			time.Sleep(400 * time.Millisecond)
		}
		x := explain(t, e, "::ffff:192.0.2.1")
		if !reflect.DeepEqual(x.Values, []string{"::ffff:192.0.2.1"}) || !x.Since.Equal(began) || len(x.Refusals) != 2 {
			t.Fatalf("%+v", x)
		}
		login, client := x.Refusals[0], x.Refusals[1]
		at := func(n int) time.Time { return began.Add(time.Duration(n) * 400 * time.Millisecond) }
		if client.Rule != "per-client" || client.Count != 1 || !client.First.Equal(at(3)) || !client.Last.Equal(at(3)) || client.Ban != nil {
			t.Errorf("%+v", client)
		}
		if login.Rule != "login" || !slices.Equal(login.Fields, []string{"client", "user"}) || !slices.Equal(login.Values(), []string{"192.0.2.1", "ada"}) ||
			login.Count != 3 || !login.First.Equal(at(1)) || !login.Last.Equal(at(4)) || !strings.Contains(login.Sentence, "may make 1 request per 1h") {
			t.Errorf("%+v", login)
		}
		// Only the event of /c, 1.2 s after the first, is within the last second.
		want := api.RefusedEvent{Time: at(4), Method: "GET", Host: "example.org", Path: "/c"}
		want.Decision = api.Decision{Limit: 1, RetryAfter: api.MillisOf(time.Hour - 1600*time.Millisecond), ResetAfter: login.Example.Decision.ResetAfter, Rule: "login"}
		if login.Example != want {
			t.Errorf("example %+v, want\n%+v", login.Example, want)
		}
		if login.Now == nil || login.Now.Allowed || login.Now.RetryAfter != api.MillisOf(time.Hour-2*time.Second) {
			t.Errorf("now: %+v", login.Now)
		}
		if got := explain(t, e, "ada", "192.0.2.1").Refusals; len(got) != 1 || got[0].Rule != "login" {
			t.Errorf("of both values: %+v", got)
		}
		if got := explain(t, e, "ada", "192.0.2.2").Refusals; len(got) != 0 {
			t.Errorf("of values of different keys: %+v", got)
		}

		// An address finds the requests of a proxy that named no client.
		for range 2 {
			check(t, c, event(c, "client", "proxy:192.0.2.7", "user", "proxied"), 1)
		}
		if got := explain(t, e, "192.0.2.7").Refusals; len(got) != 1 || !slices.Equal(got[0].Values(), []string{"proxy:192.0.2.7", "proxied"}) {
			t.Errorf("of a proxy's address: %+v", got)
		}

		// A key without an event, and a ban by hand.
		must.Get(e.Bans().Ban("login", []string{"192.0.2.9", "eve"}, time.Hour, "why", "me"))(t)
		must.Get(c.Take("login", 1, "192.0.2.9", "eve"))(t)
		got := explain(t, e, "eve").Refusals
		if len(got) != 1 || got[0].Ban == nil || got[0].Ban.Reason != "why" || got[0].Example.Path != "" || got[0].Example.Decision.BannedUntil == 0 {
			t.Errorf("a banned key: %+v", got)
		}
		// Under a rule with another key, the old refusals prove nothing.
		must.Get(e.Replace(parse(t, strings.Replace(refusingRules, "key: [client, user]", "key: user", 1)), true))(t)
		if got := explain(t, e, "ada").Refusals; len(got) != 0 {
			t.Errorf("after a reload: %+v", got)
		}
	})
}

// Many keys replace the keys that were refused longest ago, never a key that is still
// refused, and the list is complete from Since on.
func TestExplainEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := must.Get(engine.New(engine.Config{Rules: parse(t, "version: 1\nlimits: [{name: none, key: client, limit: 0 per 1s}]\n")}))(t)
		defer e.Close()
		c := e.Session()
		const keys = 40_000
		began := time.Now()
		key := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
		for i := range keys {
			if i%100 == 0 {
				check(t, c, event(c, "client", "192.0.2.1"), 1)
			}
			check(t, c, event(c, "client", key(i)), 1)
			time.Sleep(time.Millisecond)
		}
		if x := explain(t, e, "192.0.2.1"); len(x.Refusals) != 1 || x.Refusals[0].Count != keys/100 {
			t.Errorf("the key that is always refused: %+v", x.Refusals)
		}
		x := explain(t, e, key(0))
		kept := 0
		for i := range keys {
			if i%499 > 0 && i < keys-20 { // each costs a scan
				continue
			}
			found := len(explain(t, e, key(i)).Refusals) == 1
			if found {
				kept++
			} else if at := began.Add(time.Duration(i) * time.Millisecond); at.After(x.Since) {
				t.Fatalf("the key refused at %v is missing, but the list claims to be complete since %v", at, x.Since)
			}
			time.Sleep(100 * time.Millisecond) // after a scan there is a pause
		}
		if kept < 30 || !x.Since.After(began.Add(keys/4*time.Millisecond)) {
			t.Errorf("%d keys are left, Since %v after the start", kept, x.Since.Sub(began))
		}
	})
}

// Long keys are not kept, and long paths are cut between characters.
func TestExplainLongTexts(t *testing.T) {
	e := newEngine(t, "version: 1\nlimits: [{name: none, key: user, limit: 0 per 1s}]\n")
	c := e.Session()
	check(t, c, event(c, "user", strings.Repeat("u", 500), "path", "/"), 1)
	if x := explain(t, e, strings.Repeat("u", 500)); len(x.Refusals) != 0 {
		t.Errorf("%+v", x.Refusals)
	}
	path := "/" + strings.Repeat("ü", 500)
	check(t, c, event(c, "user", "a", "path", path), 1)
	x := explain(t, e, "a")
	if len(x.Refusals) != 1 {
		t.Fatal(x)
	}
	if got := x.Refusals[0].Example.Path; !strings.HasPrefix(path, got) || len(got) < 200 || len(got)%2 != 1 {
		t.Errorf("the path is %d bytes: %q", len(got), got)
	}
	for _, values := range [][]string{nil, {""}, {"a", strings.Repeat("u", 1025)}, make([]string, 9)} {
		_, err := e.Explain(values...)
		wantCode(t, err, api.BadArg, "must be 1 to")
	}
}
