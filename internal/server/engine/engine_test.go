package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

const someRules = `version: 1
counters:
  requests: {key: client, spans: [1s, 1m]}
  pairs: {key: [client, user], spans: [1m]}
limits:
  - name: per-client
    key: client
    limit: 3 per 1m
    ban: {after: 2 refusals in 5m, for: 10m}
  - name: login
    key: [client, user]
    when: {path: /login}
    limit: 1 per 1m
bans:
  - {name: flood, key: user, after: 5 hits in 1m, for: 1h}
hot:
  - {name: page, key: path, threshold: 3 per 2s, hold: 60s}
allow: [10.0.0.0/8]
`

func parse(t testing.TB, text string) *rules.File {
	t.Helper()
	return must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
}

func newEngine(t testing.TB, text string) *engine.Engine {
	t.Helper()
	c := engine.Config{}
	if text != "" {
		c.Rules = parse(t, text)
	}
	e := must.Get(engine.New(c))(t)
	t.Cleanup(e.Close)
	return e
}

func event(c *engine.Session, fields ...string) *match.Event {
	ev := c.Event()
	for i := 0; i < len(fields); i += 2 {
		ev.SetNamedString(fields[i], fields[i+1])
	}
	return ev
}

// check is Session.Check of an event that can be judged.
func check(t testing.TB, c *engine.Session, ev *match.Event, cost uint64) ratelimit.Decision {
	t.Helper()
	return must.Get(c.Check(ev, cost, engine.Terms{}))(t)
}

func wantCode(t *testing.T, err error, code api.Code, words string) {
	t.Helper()
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, words) {
		t.Errorf("got %v, want %s with %q", err, code, words)
	}
}

// An event is counted in the counters, makes keys hot, and is judged, in one step; a ban that it begins is published.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, someRules)
		sub := e.Subscribe()
		defer sub.Close()
		c := e.Session()
		var got []string
		for range 8 {
			d := check(t, c, event(c, "client", "192.0.2.1", "path", "/a"), 1)
			got = append(got, fmt.Sprint(d.Allowed, d.Remaining, !d.BannedUntil.IsZero()))
		}
		want := []string{"true 2 false", "true 1 false", "true 0 false", "false 0 false", "false 0 false", "false 0 true", "false 0 true", "false 0 true"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if lo, hi, err := sum(c, "requests", "192.0.2.1", time.Minute); lo != 8 || hi != 8 || err != nil {
			t.Errorf("the counter has %d to %d, %v; want 8", lo, hi, err)
		}
		if hot := hotOf(e); len(hot) != 1 || hot[0].Rule != "page" || hot[0].Text[0] != "/a" {
			t.Errorf("hot: %+v", hot)
		}
		var types []string
		for range 2 {
			ev := next(t, sub)
			types = append(types, string(ev.Type)+" "+string(ev.JSON))
		}
		slices.Sort(types)
		if !strings.HasPrefix(types[0], `ban {"type":"ban"`) || !strings.Contains(types[0], `"key":["192.0.2.1"]`) || !strings.HasPrefix(types[1], "hot ") {
			t.Errorf("told: %q", types)
		}
		if got := e.Totals(); got != (api.Totals{Allowed: 3, Refused: 2, Banned: 3}) {
			t.Errorf("totals %+v", got)
		}
		time.Sleep(10*time.Minute + 1500*time.Millisecond) // the last sample is half a second old
		if d := check(t, c, event(c, "client", "192.0.2.1", "path", "/b"), 1); !d.Allowed {
			t.Errorf("refused after the ban: %+v", d)
		}
		wantRates(t, e, api.Totals{Allowed: 3, Refused: 2, Banned: 3}, api.RuleTotals{Allowed: 3, Refused: 2, Banned: 3, Bans: 1})
		time.Sleep(time.Second)
		wantRates(t, e, api.Totals{Allowed: 4, Refused: 2, Banned: 3}, api.RuleTotals{Allowed: 4, Refused: 2, Banned: 3, Bans: 1})
	})
}

// wantRates compares the sums of the rates in the last hour, for all rules and for the rule per-client.
func wantRates(t *testing.T, e *engine.Engine, all api.Totals, rule api.RuleTotals) {
	t.Helper()
	rates := must.Get(e.Rates(time.Hour, 60, true))(t)
	var gotAll api.Totals
	var gotRule api.RuleTotals
	for _, r := range rates {
		gotAll.Allowed += r.All.Allowed
		gotAll.Refused += r.All.Refused
		gotAll.Banned += r.All.Banned
		gotAll.Errors += r.All.Errors
		one := r.Rules["per-client"]
		gotRule.Allowed += one.Allowed
		gotRule.Refused += one.Refused
		gotRule.Shadow += one.Shadow
		gotRule.Banned += one.Banned
		gotRule.Bans += one.Bans
	}
	if gotAll != all || gotRule != rule {
		t.Errorf("rates add up to %+v and %+v; want %+v and %+v", gotAll, gotRule, all, rule)
	}
}

// The same key is the same record, whether it comes in an event or by itself, and
// however its address is written.
func TestTakeIsCheck(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	if d := check(t, c, event(c, "client", "::ffff:192.0.2.7"), 1); d.Remaining != 2 {
		t.Fatalf("%+v", d)
	}
	for i, key := range []string{"192.0.2.7", "::ffff:192.0.2.7"} {
		d, err := c.Take("per-client", 1, key)
		if err != nil || d.Remaining != uint64(1-i) {
			t.Errorf("%s: %+v, %v", key, d, err)
		}
	}
	if d, err := c.PeekRule("per-client", 1, "192.0.2.7"); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if n, err := c.Refund("per-client", 2, "192.0.2.7"); n != 2 || err != nil {
		t.Errorf("%d refunded, %v", n, err)
	}
	if d, _ := c.PeekRule("per-client", 1, "192.0.2.7"); !d.Allowed || d.Remaining != 1 {
		t.Errorf("after a refund: %+v", d)
	}
	if err := c.Reset("per-client", "192.0.2.7"); err != nil {
		t.Error(err)
	}
	if d, _ := c.PeekRule("per-client", 1, "192.0.2.7"); d.Remaining != 2 {
		t.Errorf("after a reset: %+v", d)
	}
	if d, err := c.Take("login", 1, "2001:db8::1\tada"); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if d := check(t, c, event(c, "client", "2001:db8::2", "user", "ada", "path", "/login"), 1); d.Allowed {
		t.Errorf("another address of the same network is another key: %+v", d)
	}
	if d := check(t, c, event(c, "client", "10.1.2.3", "path", "/login", "user", "x"), 5); !d.Allowed || d.Rule != "" {
		t.Errorf("the allow list: %+v", d)
	}
}

// Invalid calls return an error with a code and a sentence.
func TestMistakes(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	_, err := c.Take("per-clint", 1, "k")
	wantCode(t, err, api.NoRule, "per-client")
	_, err = c.Take("login", 1, "192.0.2.1")
	wantCode(t, err, api.BadArg, "")
	_, err = c.Take("per-client", 1, strings.Repeat("x", 100_000))
	wantCode(t, err, api.BadArg, "")
	_, _, err = sum(c, "nothing", "k", 0)
	wantCode(t, err, api.BadArg, "requests")
	_, _, err = sum(c, "requests", "k", time.Hour)
	wantCode(t, err, api.BadArg, "1m")
	wantCode(t, c.Add("bad name", 1, "k"), api.BadArg, "must be 1 to 64 letters")
	_, err = e.Bans().Ban("per-client", []string{"a", "b"}, time.Hour, "", "")
	wantCode(t, err, api.BadArg, "")
	_, err = e.Bans().Ban("nobody", []string{"a"}, time.Hour, "", "")
	wantCode(t, err, api.NoRule, "nobody")
	_, err = e.Bans().Ban("per-client", []string{"192.0.2"}, time.Hour, "", "")
	wantCode(t, err, api.BadArg, "must be an address")
	_, err = e.Bans().Ban("per-client", []string{"192.0.2.1"}, 0, "", "")
	wantCode(t, err, api.BadArg, "must be after since")
	_, err = e.Bans().Unban("nobody", []string{"a"})
	wantCode(t, err, api.NoRule, "nobody")
	_, err = e.Inspect([]string{"client"}, nil)
	wantCode(t, err, api.BadArg, "")
	_, err = e.Rates(time.Millisecond, 1, false)
	wantCode(t, err, api.BadArg, "1s to 24h")
}

// second returns the error of a call that returns a value as well.
func second[T any](_ T, err error) error { return err }

// Counters are created by the first add, up to a maximum number.
func TestCountersAreMade(t *testing.T) {
	e := newEngine(t, "")
	c := e.Session()
	for i := range counters.MaxDynamic {
		must.Do(t, c.Add(fmt.Sprint("c", i), uint64(i), "k"))
	}
	wantCode(t, c.Add("more", 1, "k"), api.Overload, "32")
	for i := range counters.MaxDynamic {
		if lo, _, err := sum(c, fmt.Sprint("c", i), "k", 0); lo != uint64(i) || err != nil {
			t.Errorf("c%d has %d, %v", i, lo, err)
		}
	}
	c.Add("c1", 100, "other")
	top, err := e.Top("c1", 5, time.Minute, keys.Filter{})
	if err != nil || len(top) != 2 || top[0].Text[0] != "other" || top[0].Lo != 100 || top[1].Lo != 1 {
		t.Errorf("top: %+v, %v", top, err)
	}
	if rate, err := rate(c, "c1", "other", time.Minute); err != nil || rate != 100.0/60 {
		t.Errorf("rate %v, %v", rate, err)
	}
}

// A reload loses no count of what stays, and a file that cannot be changes nothing.
func TestReload(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	c.Add("made", 7, "k")
	for range 3 {
		c.Check(event(c, "client", "192.0.2.1", "path", "/a"), 1, engine.Terms{})
	}
	more := strings.Replace(someRules, "limit: 3 per 1m", "limit: 5 per 1m", 1) + "  \n"
	must.Get(e.Replace(parse(t, more), true))(t)
	if d, _ := c.PeekRule("per-client", 1, "192.0.2.1"); d.Remaining != 1 || d.Limit != 5 {
		t.Errorf("after a reload: %+v", d)
	}
	if lo, _, _ := sum(c, "requests", "192.0.2.1", 0); lo != 3 {
		t.Errorf("the counter has %d", lo)
	}
	if lo, _, _ := sum(c, "made", "k", 0); lo != 7 {
		t.Errorf("the counter that was made has %d", lo)
	}
	c.Check(event(c, "client", "192.0.2.9", "path", "/a"), 1, engine.Terms{}) // the fourth: it stays hot, without another event
	if hot := hotOf(e); len(hot) != 1 {
		t.Errorf("hot: %+v", hot)
	}
	e.ReloadFailed(errors.New("rules.yaml:1:1: nonsense"))
	if s := e.Status(); s.Rules.Reloads != 1 || s.Rules.Error == "" {
		t.Errorf("%+v", s)
	}
}

// Bans by hand hold, are listed and unbanned.
func TestBans(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	r, err := e.Bans().Ban("login", []string{"2001:db8::1", "eve"}, time.Hour, "because", "ada")
	if err != nil || r.Values()[0] != "2001:db8::/64" {
		t.Fatalf("%+v, %v", r, err)
	}
	d := check(t, c, event(c, "client", "2001:db8::77", "user", "eve", "path", "/login"), 1)
	if d.Allowed || d.BannedUntil.IsZero() || d.Rule != "login" {
		t.Errorf("%+v", d)
	}
	n := 0
	for b, err := range e.Bans().All() {
		if n++; err != nil || b.Reason != "because" || b.Source != "ada" {
			t.Errorf("%+v, %v", b, err)
		}
	}
	report, err := e.Inspect([]string{"client", "user"}, []string{"2001:db8::2", "eve"})
	if err != nil || len(report.Bans) != 1 || len(report.Rules) != 1 || len(report.Counters) != 1 || report.Counters[0].Lo != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if ended, err := e.Bans().Unban("login", []string{"2001:db8::9", "eve"}); ended != 1 || err != nil || n != 1 {
		t.Errorf("unbanned %d, %v; %d bans", ended, err, n)
	}
	if ended, err := e.Bans().Unban("login", []string{"2001:db8::9", "eve"}); ended != 0 || err != nil {
		t.Errorf("unbanned twice: %d, %v", ended, err)
	}
}

// A ban is ended by the key in its listed form: a path that was decoded once is not decoded again.
func TestLiftAsListed(t *testing.T) {
	e := newEngine(t, "version: 1\nbans: [{name: path, key: path, after: 5 hits in 1m, for: 1h}]\n")
	must.Get(e.Bans().Ban("path", []string{"/a%2541"}, time.Hour, "", ""))(t)
	var listed []string
	for b := range e.Bans().All() {
		listed = b.Values()
	}
	if n, err := e.Bans().Unban("path", listed); n != 1 || err != nil || listed[0] != "/a%41" {
		t.Errorf("%q: %d, %v", listed, n, err)
	}
}

// atTime is a time of the past.
var atTime = time.Unix(1_700_000_000, 0)

// logged returns an event of a log, of that time.
func logged(c *engine.Session, at time.Time, fields ...string) *match.Event {
	ev := event(c, fields...)
	ev.Time = at
	return ev
}

// Events of a log, in order, are judged at their own times, as a limiter of a replay does, whatever
// is reloaded in between.
func TestLoggedEventsAreJudgedAsInReplay(t *testing.T) {
	// A window of slots that stays at its bound reveals whether times are floored.
	const busy = "version: 1\nlimits: [{name: busy, key: path, limit: 90 per 100s}]\n"
	for _, text := range []string{someRules, busy} {
		e := newEngine(t, text)
		c := e.Session()
		set := parse(t, text).Limits
		want := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Budget: -1}))(t)
		for i := range 2000 {
			at := time.UnixMilli(int64(i)*777 + int64(i%3))
			ev := logged(c, at, "client", fmt.Sprint("192.0.2.", i%7), "user", fmt.Sprint(i%11), "path", "/login")
			got := c.CheckLogged(ev)
			if d := want.TakeAt(at, ev, 1); got != d {
				t.Fatalf("event %d: got %+v, want %+v", i, got, d)
			}
			if i%500 == 250 {
				must.Get(e.Replace(parse(t, text+strings.Repeat(" ", i)), true))(t)
			}
		}
	}
}

// A subscriber that does not read is cut off; the others receive everything.
func TestSlowSubscriber(t *testing.T) {
	e := newEngine(t, someRules)
	slow, good := e.Subscribe(), e.Subscribe()
	defer good.Close()
	for i := range 5000 {
		must.Get(e.Bans().Ban("flood", []string{fmt.Sprint("u", i)}, time.Hour, "", ""))(t)
		if ev := next(t, good); ev.Ban.Text[0] != fmt.Sprint("u", i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	if n := told(slow); !slow.Slow() || n != 0 || e.Status().Cut != 1 {
		t.Errorf("the slow one received %d, slow %t; %d cut", n, slow.Slow(), e.Status().Cut)
	}
}

// sum returns the bounds of a key's count.
func sum(c *engine.Session, name, key string, span time.Duration) (lo, hi uint64, err error) {
	count, _, err := c.Count(name, span, key)
	return count.Lo, count.Hi, err
}

// rate returns the events per second of a key.
func rate(c *engine.Session, name, key string, span time.Duration) (float64, error) {
	_, perSecond, err := c.Count(name, span, key)
	return perSecond, err
}

// next returns the next event, after waiting for it.
func next(t *testing.T, sub *events.Subscription) *events.Event {
	t.Helper()
	for {
		if ev, ok := sub.Next(); ok {
			return ev
		}
		select {
		case <-sub.Wait():
		case <-sub.Done():
			t.Fatal("the subscription has ended")
		}
	}
}

// told returns the number of waiting events.
func told(sub *events.Subscription) (n int) {
	for _, ok := sub.Next(); ok; _, ok = sub.Next() {
		n++
	}
	return n
}

// No decision allocates.
func TestNoAllocations(t *testing.T) {
	e := newEngine(t, someRules)
	c := e.Session()
	c.Add("requests", 1, "192.0.2.1")
	for name, f := range map[string]func(){
		"check": func() { c.Check(event(c, "client", "192.0.2.1", "path", "/x"), 1, engine.Terms{}) },
		"take":  func() { c.Take("per-client", 1, "192.0.2.1") },
		"add":   func() { c.Add("requests", 1, "192.0.2.1") },
		"sum":   func() { sum(c, "requests", "192.0.2.1", time.Minute) },
	} {
		for range 20 {
			f()
		}
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
