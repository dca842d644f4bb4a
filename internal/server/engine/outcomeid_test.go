package engine_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// identified checks an event, and returns the id for its outcome.
func identified(t testing.TB, c *engine.Session, terms engine.Terms, fields ...string) (ratelimit.Decision, string) {
	t.Helper()
	d, err := c.Check(event(c, fields...), 1, terms)
	id, asked := c.ID()
	if err != nil || !asked {
		t.Fatalf("%+v, %v, store called %t", d, err, asked)
	}
	return d, string(id)
}

// reportAnswer reports an answer by id.
func reportAnswer(c *engine.Session, id string, fields ...string) (ratelimit.Decision, error) {
	return c.Check(event(c, fields...), 1, engine.Terms{Outcome: true, ByID: true, ID: id})
}

func mustReport(t testing.TB, c *engine.Session, id string, fields ...string) ratelimit.Decision {
	t.Helper()
	d, err := reportAnswer(c, id, fields...)
	if err != nil || !d.Allowed {
		t.Fatalf("outcome %q by %q: %+v, %v", fields, id, d, err)
	}
	return d
}

var forAMinute = engine.Terms{Report: time.Minute}

// failures returns how many of its two failed logins a client has left.
func failures(t testing.TB, c *engine.Session, client string) uint64 {
	t.Helper()
	d := must.Get(c.PeekRule("failed-logins", 1, client))(t)
	left := d.Remaining
	if d.Allowed {
		left++ // without the event that only looks
	}
	return 2 - left
}

func wantFailures(t testing.TB, c *engine.Session, client string, want uint64, when string) {
	t.Helper()
	if got := failures(t, c, client); got != want {
		t.Errorf("%s: %d failed logins, want %d", when, got, want)
	}
}

// TestOutcomeByID reports answers by the ids of decisions: each counts once, and other ids count nothing.
func TestOutcomeByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, answerRules)
		c, other := e.Session(), e.Session()
		login := []string{"client", "192.0.2.1", "path", "/login", "agent", "secret-agent"}
		_, id := identified(t, c, forAMinute, login...)
		mustReport(t, other, id, "status", "200")
		wantFailures(t, c, "192.0.2.1", 0, "a login that has not failed")
		mustReport(t, c, id, "status", "401")
		wantFailures(t, c, "192.0.2.1", 0, "an id that was reported before")

		_, id = identified(t, c, forAMinute, login...)
		for i, want := range []uint64{1, 0, 0} { // of a peek from the second on
			if d := mustReport(t, other, id, "status", "401"); d.Rule != "failed-logins" || d.Remaining != want {
				t.Errorf("report %d: %+v", i, d)
			}
		}
		wantFailures(t, c, "192.0.2.1", 1, "a failed login that is reported three times")
		if n := e.Status().Outcomes; n != 2 {
			t.Errorf("%d outcomes", n)
		}
		for _, part := range login {
			if strings.Contains(id, part) || strings.Contains(id, base64.RawURLEncoding.EncodeToString([]byte(part))) {
				t.Errorf("the id %s shows %s", id, part)
			}
		}

		// The fields of the decision win; others can be added.
		_, id = identified(t, c, forAMinute, "client", "192.0.2.2", "path", "/login")
		mustReport(t, c, id, "client", "192.0.2.3", "path", "/", "status", "401", "user", "ada")
		wantFailures(t, c, "192.0.2.2", 1, "the client of the decision")
		wantFailures(t, c, "192.0.2.3", 0, "the client of the outcome")

		// A time that has passed, and one that is about to.
		_, late := identified(t, c, engine.Terms{Report: time.Second}, "client", "192.0.2.4", "path", "/login")
		time.Sleep(time.Second)
		_, intime := identified(t, c, engine.Terms{Report: time.Minute}, "client", "192.0.2.4", "path", "/login")
		time.Sleep(time.Millisecond)
		_, err := reportAnswer(c, late, "status", "401")
		wantCode(t, err, api.Expired, "its time was over")
		mustReport(t, c, intime, "status", "401")
		wantFailures(t, c, "192.0.2.4", 1, "reported in time")

		for _, fields := range [][]string{nil, {"path", "/login"}, {"status", "99"}, {"size", "-1"}} {
			_, id := identified(t, c, forAMinute, "client", "192.0.2.5", "path", "/login")
			_, err := reportAnswer(c, id, fields...)
			wantCode(t, err, api.BadArg, "")
			mustReport(t, c, id, "status", "200") // it was not used up
		}
	})
}

// TestNoOutcomeID has no id for what no rule looks at, and the empty one counts nothing.
func TestNoOutcomeID(t *testing.T) {
	e := newEngine(t, "version: 1\nlimits: [{name: failed-logins, key: client, when: {path: /login, status: 401}, limit: 2 per 10m}]\nallow: [192.0.2.9]\n")
	c := e.Session()
	for _, fields := range [][]string{
		{"client", "192.0.2.1", "path", "/"}, {"client", "192.0.2.1", "path", "/login", "status", "401"},
	} {
		if _, id := identified(t, c, forAMinute, fields...); id != "" {
			t.Errorf("%q has the id %s", fields, id)
		}
	}
	mustReport(t, c, "", "status", "401", "client", "192.0.2.1", "path", "/login")
	wantFailures(t, c, "192.0.2.1", 1, "a request with its answer, and an outcome with an empty id")
	if d, id := identified(t, c, forAMinute, "client", "192.0.2.1", "path", "/login"); !d.Allowed || id == "" {
		t.Errorf("%+v has the id %q", d, id)
	} else {
		mustReport(t, c, id, "status", "401")
	}
	if d, id := identified(t, c, forAMinute, "client", "192.0.2.1", "path", "/login"); d.Allowed || id != "" {
		t.Errorf("%+v has the id %q", d, id)
	}
	for _, fields := range [][]string{ // the id of a reservation, which is never empty
		{"client", "192.0.2.5", "path", "/"}, {"client", "192.0.2.5", "path", "/login", "status", "401"},
	} {
		_, id := identified(t, c, engine.Terms{Hold: time.Minute, Report: time.Minute}, fields...)
		for range 2 {
			mustReport(t, c, id, "status", "401", "client", "192.0.2.5", "path", "/login")
		}
		settle(t, c, id, 0, true)
	}
	wantFailures(t, c, "192.0.2.5", 0, "reservations whose answers no rule looks at") // what was counted immediately was taken back
	_, id := identified(t, c, forAMinute, "client", "192.0.2.9", "path", "/login")
	if d := mustReport(t, c, id, "status", "401"); d.Rule != "" {
		t.Errorf("a client on the allow list: %+v", d)
	}

	plain := newEngine(t, someRules).Session()
	if _, id := identified(t, plain, forAMinute, "client", "192.0.2.1", "path", "/login"); id != "" {
		t.Errorf("no rule looks at answers, and the id is %s", id)
	}
}

// TestMadeUpOutcomeIDs reports by ids that were changed in every way, or are of another server or for something else: nothing is counted.
func TestMadeUpOutcomeIDs(t *testing.T) {
	e := newEngine(t, answerRules)
	c := e.Session()
	_, id := identified(t, c, forAMinute, "client", "192.0.2.1", "path", "/login")
	wrong := []string{"ada", id[1:], id[:len(id)-1], id + "A", id + "=", id + "\n", " " + id, id + id, strings.Repeat("A", 3<<20)}
	for i := range id {
		other := byte('A')
		if id[i] == 'A' {
			other = 'B'
		}
		wrong = append(wrong, id[:i]+string(other)+id[i+1:])
	}
	for _, text := range wrong {
		_, err := reportAnswer(c, text, "status", "401", "client", "192.0.2.1", "path", "/login")
		wantCode(t, err, api.BadID, "id: not one that")
	}
	_, err := reportAnswer(newEngine(t, answerRules).Session(), id, "status", "401")
	wantCode(t, err, api.BadID, "id: not one that")
	_, held := identified(t, c, engine.Terms{Hold: time.Minute}, "client", "192.0.2.1", "path", "/login")
	_, err = reportAnswer(c, held, "status", "401")
	wantCode(t, err, api.BadID, "only for SETTLE")
	_, err = c.Settle(id, 1)
	wantCode(t, err, api.BadID, "not that of a reservation")
	wantFailures(t, c, "192.0.2.1", 0, "after wrong ids")

	// One id for both.
	d, both := identified(t, c, engine.Terms{Hold: time.Minute, Report: time.Minute}, "client", "192.0.2.7", "path", "/login")
	settle(t, c, both, 50, true)
	mustReport(t, c, both, "status", "401")
	settle(t, c, both, 0, false)
	mustReport(t, c, both, "status", "401")
	wantFailures(t, c, "192.0.2.7", 1, "settled and reported")
	if now, err := c.PeekRule("per-client", 1, "192.0.2.7"); err != nil || d.Remaining-now.Remaining == 0 || now.Remaining != 49 {
		t.Errorf("%+v and then %+v, %v", d, now, err)
	}
}

// TestLongRequestHasNoID rejects an event whose id would be too long. Fields that no rule about answers needs may be long.
func TestLongRequestHasNoID(t *testing.T) {
	c := newEngine(t, answerRules).Session()
	long := "/" + strings.Repeat("x", 2900)
	_, err := c.Check(event(c, "client", "192.0.2.1", "path", long), 1, forAMinute)
	wantCode(t, err, api.BadArg, "must be at most 2900 in an id")
	check(t, c, event(c, "client", "192.0.2.1", "path", long), 1)
	_, id := identified(t, c, forAMinute, "client", "192.0.2.1", "path", long[:2800], "agent", strings.Repeat("x", 1<<16))
	if len(id) >= 4096 || len(id) < 3700 {
		t.Errorf("the id has %d bytes", len(id))
	}
	mustReport(t, c, id, "status", "404")
}

// TestOutcomeAfterReload reports by ids of decisions under other rules: a rule that needs a field which the id lacks counts that.
func TestOutcomeAfterReload(t *testing.T) {
	const text = "version: 1\nfields: {tenant: {}}\nlimits:\n  - {name: failed-logins, key: client, when: {status: 401}, limit: 2 per 10m}\n"
	e := newEngine(t, text)
	c := e.Session()
	request := []string{"client", "192.0.2.1", "path", "/login", "tenant", "acme"}
	_, same := identified(t, c, forAMinute, request...)
	_, before := identified(t, c, forAMinute, request...)
	_, removed := identified(t, c, forAMinute, request...)
	mustReport(t, c, same, "status", "401")
	must.Get(e.Replace(parse(t, text+"  - {name: by-tenant, key: tenant, when: {status: 401}, limit: 2 per 10m}\n  - {name: by-path, key: client, when: {path: /login, status: 401}, limit: 2 per 10m}\n"), false))(t)
	for range 2 {
		mustReport(t, c, before, "status", "401")
	}
	wantFailures(t, c, "192.0.2.1", 2, "under the rule that was there before")
	for rule, want := range map[string]uint64{"failed-logins": 0, "by-tenant": 1, "by-path": 1} {
		if got := e.Lacking(rule); got != want {
			t.Errorf("%s lacks a field %d times, want %d", rule, got, want)
		}
	}
	_, after := identified(t, c, forAMinute, "client", "192.0.2.2", "path", "/login", "tenant", "acme")
	mustReport(t, c, after, "status", "401")
	if d, err := c.PeekRule("by-tenant", 1, "acme"); err != nil || d.Remaining != 0 {
		t.Errorf("an id of the new rules: %+v, %v", d, err)
	}
	must.Get(e.Replace(parse(t, "version: 1\n"), true))(t)
	mustReport(t, c, removed, "status", "401")
}

// TestOutcomeAfterRestart recognizes after a restart the ids that were reported before.
func TestOutcomeAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, answerRules)
		c := e.Session()
		_, reported := identified(t, c, engine.Terms{Report: time.Hour}, "client", "192.0.2.1", "path", "/login")
		_, open := identified(t, c, engine.Terms{Report: time.Hour}, "client", "192.0.2.1", "path", "/login")
		mustReport(t, c, reported, "status", "401")
		time.Sleep(2 * time.Second)
		f := restored(t, answerRules, saved(t, e))
		f.Secret().Set(e.Secret().Value())
		c = f.Session()
		mustReport(t, c, reported, "status", "401")
		wantFailures(t, c, "192.0.2.1", 1, "reported before the restart")
		mustReport(t, c, open, "status", "401")
		wantFailures(t, c, "192.0.2.1", 2, "reported after the restart")
	})
}

// TestBatchOfOutcomes queues outcomes by id, some of them twice, among other decisions.
func TestBatchOfOutcomes(t *testing.T) {
	c := newEngine(t, answerRules).Session()
	var ids []string
	for i := range 50 {
		_, id := identified(t, c, forAMinute, "client", fmt.Sprint("198.51.100.", i), "path", "/login")
		ids = append(ids, id)
	}
	for i, id := range ids {
		for range 1 + i%3 {
			must.Do(t, c.QueueCheck(event(c, "status", "401"), 1, engine.Terms{Outcome: true, ByID: true, ID: id}))
		}
		must.Do(t, c.QueueCheck(event(c, "client", "192.0.2.1", "path", "/"), 1, forAMinute))
	}
	i := 0
	for d, err := range c.Decide() {
		if err != nil || !d.Allowed {
			t.Fatalf("decision %d: %+v, %v", i, d, err)
		}
		i++
	}
	for i := range ids {
		wantFailures(t, c, fmt.Sprint("198.51.100.", i), 1, fmt.Sprint("client ", i))
	}
}

// manyAnswerRules looks at answers in every way.
const manyAnswerRules = `version: 1
fields: {session: {cookie: sid, hash: true, trusted: true}, tenant: {missing: share}, tier: {}}
counters:
  failures: {key: [client, path], when: {status: 4xx}, spans: [1m]}
limits:
  - {name: requests, key: client, limit: 8 per 1m}
  - {name: logins, key: client, when: {path: "/login/**", status: [401, 403]}, limit: 2 per 1m}
  - {name: sessions, key: session, when: {status: 401, not: {agent: "good*"}}, limit: 3 per 1m, ban: {after: 1 refusals in 1m, for: 1m}}
  - {name: tenants, key: tenant, when: [{status: 404}, {path: /a, size: "1*"}], limit: 6 per 1m}
  - {name: plans, key: client, when: {status: 200}, limit: {by: tier, plans: {free: 1 per 1m, pro: 5 per 1m}, default: 3 per 1m}}
bans:
  - {name: missing, key: client, when: {status: 404}, after: 2 distinct path in 1m, for: 30s}
  - {name: slow, key: "tier | client", when: {duration: "9*", method: GET}, after: 2 hits in 1m, for: 30s}
`

// TestOutcomeByIDEqualsByFields has two engines judge the same random requests and answers; one receives outcomes by id and
// the other with all fields: every decision is the same.
func TestOutcomeByIDEqualsByFields(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	different := 0 // of a control that reports by an id without the fields
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			byID, byFields, control := newEngine(t, manyAnswerRules).Session(), newEngine(t, manyAnswerRules).Session(), newEngine(t, manyAnswerRules).Session()
			for range 150 {
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
				}
				request := randomRequest(rnd)
				d, id := identified(t, byID, forAMinute, request...)
				if want := check(t, byFields, event(byFields, request...), 1); d != want {
					t.Fatalf("%q is judged %+v and %+v", request, d, want)
				}
				check(t, control, event(control, request...), 1)
				if !d.Allowed {
					continue
				}
				answer := []string{"status", pick(rnd, "200", "401", "403", "404"), "size", pick(rnd, "17", "200"), "duration", pick(rnd, "9.5", "0.1")}
				want := outcome(t, byFields, append(request, answer...)...)
				if got := mustReport(t, byID, id, answer...); id != "" && got != want {
					t.Fatalf("the answer %q to %q is judged %+v and %+v", answer, request, got, want)
				}
				if outcome(t, control, answer...) != want {
					different++
				}
			}
		})
	}
	if different == 0 {
		t.Error("answers without fields are judged as those with all")
	}
}

func pick(rnd *rand.Rand, values ...string) string { return values[rnd.IntN(len(values))] }

func randomRequest(rnd *rand.Rand) []string {
	fields := []string{
		"client", pick(rnd, "192.0.2.1", "192.0.2.2"), "method", pick(rnd, "GET", "POST"),
		"path", pick(rnd, "/a", "/b", "/login/x", "/LOGIN/x", "//login/y", "/c%2e"), "agent", pick(rnd, "good bot", "bad bot"),
	}
	for _, optional := range [][]string{{"session", "s1", "s2"}, {"tenant", "acme", "apex"}, {"tier", "free", "pro", "none"}, {"user", "ada"}} {
		if rnd.IntN(3) > 0 {
			fields = append(fields, optional[0], pick(rnd, optional[1:]...))
		}
	}
	return fields
}

// TestOutcomeWithoutMemoryForIDs reports more ids than are remembered: each counts, and one that comes again counts again rather than none.
func TestOutcomeWithoutMemoryForIDs(t *testing.T) {
	e := must.Get(engine.New(engine.Config{Rules: parse(t, answerRules), Settled: 16}))(t)
	t.Cleanup(e.Close)
	c := e.Session()
	again := 0
	for i := range 100 {
		client := fmt.Sprint("198.51.100.", i)
		_, id := identified(t, c, forAMinute, "client", client, "path", "/login")
		mustReport(t, c, id, "status", "401")
		mustReport(t, c, id, "status", "401")
		switch n := failures(t, c, client); n {
		case 1:
		case 2:
			again++
		default:
			t.Errorf("%s: %d failed logins", client, n)
		}
	}
	if again != 100-16 {
		t.Errorf("%d of 100 ids counted again, with memory for 16", again)
	}
}
