package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// fleetRules has every kind of rule of docs/rules.md that a store can keep. Each limit allows 10.
const fleetRules = `version: 1
counters:
  requests: {key: client, spans: [1m, 1h]}
limits:
  - {name: sliding, key: user, limit: 10 per 1h}
  - {name: exact, key: user, limit: 10 per 1h, algorithm: exact}
  - {name: two-bucket, key: user, limit: 10 per 1h, algorithm: two-bucket}
  - {name: gcra, key: user, limit: 10 per 10h burst 10, algorithm: gcra}
  - {name: token-bucket, key: user, limit: 10 per 10h burst 10, algorithm: token-bucket}
  - {name: leaky-bucket, key: user, limit: 10 per 10h burst 10, algorithm: leaky-bucket}
  - {name: fixed, key: user, limit: 10 per 1h, algorithm: fixed}
  - {name: calendar, key: user, limit: 10 per month, algorithm: calendar, zone: Europe/Vienna}
  - {name: in-flight, key: user, limit: 10 at once for 1h, algorithm: in-flight}
  - {name: two-spans, key: user, limit: [10 per 1h, 15 per 1d]}
  - {name: refused-too, key: user, limit: 10 per 1h, count_refused: true}
  - {name: either, key: user | client, limit: 10 per 1h}
  - {name: shadow, key: user, limit: 10 per 1h, mode: shadow}
  - {name: closed, key: user, limit: 10 per 1h, on_store_failure: closed}
  - {name: open, key: user, limit: 10 per 1h, on_store_failure: open}
  - {name: many, key: user, limit: 12 per 1h}
  - {name: stuffing, key: [client, host], when: {path: /login}, limit: 100 per 1h, ban: {after: 3 hits in 1h, for: 1h}}
  - {name: knocking, key: host, when: {path: /knock}, limit: 2 per 1h, ban: {after: 3 refusals in 1h, for: 1h, factor: 2, max: 1d, jitter: 0.1}}
bans:
  - {name: network, key: client/24, when: {path: /scan}, after: 5 hits in 1h, for: [1h, 1d]}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 3 per 1h}
allow: [198.51.100.1]
`

// A fleet is three servers that share one Redis.
type fleet struct {
	*testing.T
	rules   string // the path of the file that all have
	redis   *redistest.Server
	servers []*serving
	talkers []*talker
}

// TestFleet is a day of three servers with one Redis. Each step is a sentence about what a user is promised.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := &fleet{T: t, redis: redistest.Own(t), rules: writeRules(t, fleetRules), servers: make([]*serving, 3), talkers: make([]*talker, 3)}
	for i := range f.servers {
		f.start(i)
	}
	first, second, third := 0, 1, 2

	f.eventually("all three servers are ready, and know of each other", func(i int) bool { return f.ready(i) == 200 && f.status(i).Nodes == 3 })

	// Limits are shared exactly.
	for _, rule := range []string{
		"sliding", "exact", "two-bucket", "gcra", "token-bucket", "leaky-bucket", "fixed", "calendar", "in-flight", "two-spans", "refused-too", "either", "closed", "open",
	} {
		key := "ada"
		if rule == "either" {
			key = "user:ada"
		}
		f.equal(rule+": of 30 events at once, 10 on each server, 10 are allowed", f.takes(rule, key, 10), 10)
	}
	f.equal("a shadow rule allows all 30", f.takes("shadow", "ada", 10), 30)
	f.equal("one place that the first server releases", f.say(first, "RELEASE", "in-flight", "ada"), "1")
	f.equal("is free on the third", f.allows(third, "in-flight", "ada"), true)
	f.equal("one event that the second server gives back", f.say(second, "REFUND", "sliding", "ada"), "1")
	f.equal("is allowed on the first", f.takes("sliding", "ada", 1), 1)
	f.equal("a key that the third server resets", f.say(third, "RESET", "exact", "ada"), "OK")
	f.equal("has its whole limit on all of them", f.takes("exact", "ada", 10), 10)

	// A ban on one server holds on all of them.
	f.equal("an operator bans bob on the first server", f.say(first, "BAN", "sliding", "bob", "2h", "scraper"), "OK")
	f.each("bob is refused everywhere, at once", func(i int) bool { return !f.allows(i, "sliding", "bob") })
	for n := range 4 {
		f.say(n%3, "CHECK", "client", "192.0.2.7", "host", "a.example", "path", "/login")
	}
	f.each("a client that has tried to log in four times, on any servers, is refused everywhere", func(i int) bool {
		return f.refuses(i, "stuffing", "client", "192.0.2.7", "host", "a.example", "path", "/login")
	})
	for n := range 6 {
		f.say(n%3, "CHECK", "host", "b.example", "path", "/knock")
	}
	f.each("a host with more refusals than its rule allows is refused everywhere", func(i int) bool {
		return f.refuses(i, "knocking", "host", "b.example", "path", "/knock")
	})
	for n := range 6 {
		f.say(n%3, "CHECK", "client", fmt.Sprint("203.0.113.", n), "path", "/scan")
	}
	f.each("a network with more hits than its rule allows is refused everywhere, with clients that were never seen", func(i int) bool {
		return f.refuses(i, "network", "client", "203.0.113.200", "path", "/scan")
	})
	f.each("a client of the allow list is allowed everywhere", func(i int) bool {
		return strings.HasPrefix(f.say(i, "CHECK", "client", "198.51.100.1", "path", "/scan"), "[1 ")
	})

	all := []string{"knocking b.example", "network 203.0.113.0/24", "sliding bob", "stuffing 192.0.2.7,a.example"}
	f.lists("RESP, HTTP and lately bans list the same four bans on all three servers", all)

	// The end of a ban, too.
	f.equal("an operator ends the ban of bob on the second server", f.say(second, "UNBAN", "sliding", "bob"), "1")
	f.eventually("bob is allowed everywhere", func(i int) bool { return f.allows(i, "sliding", "bob") })
	f.lists("bob is on no list", slices.Delete(slices.Clone(all), 2, 3))
	f.equal("the network is unbanned on the third server", f.say(third, "UNBANALL", "NETWORK", "203.0.113.0/24"), "1")
	all = []string{"knocking b.example", "stuffing 192.0.2.7,a.example"}
	f.lists("two bans are left", all)

	// Shared and separate state.
	f.equal("an add on the first server", f.say(first, "ADD", "requests", "192.0.2.7", "5"), "OK")
	f.eventually("is counted on all of them", func(i int) bool {
		return f.say(i, "SUM", "requests", "192.0.2.7") == f.say(first, "SUM", "requests", "192.0.2.7")
	})
	for range 3 {
		f.say(second, "CHECK", "path", "/product/1")
	}
	f.equal("a key is hot on the server that has counted it", strings.Contains(f.say(second, "HOT.LIST"), "/product/1"), true)
	f.equal("and not on others", f.say(third, "HOT.LIST"), "[]")

	// A reload keeps the counts.
	f.equal("12 of 30 are allowed", f.takes("many", "eve", 10), 12)
	must.Do(t, os.WriteFile(f.rules, []byte(strings.Replace(fleetRules, "many, key: user, limit: 12", "many, key: user, limit: 15", 1)), 0o600))
	f.each("each server reads the file again", func(i int) bool {
		code, out := f.lately(i, "reload")
		return code == exitOK && strings.Contains(out, "many")
	})
	f.equal("the limit is 15 now, of which 12 are used", f.takes("many", "eve", 10), 3)
	f.eventually("no server has other rules than the others", func(i int) bool { s := f.status(i); return s.Nodes == 3 && s.OtherRules == 0 })

	// A server is killed.
	f.equal("three events are counted, one on each server", f.takes("fixed", "kim", 1), 3)
	f.servers[first].kill()
	f.equal("the two that are left allow what is left", f.takesOn("fixed", "kim", 10, second, third), 7)
	f.start(first)
	f.eventually("the first server is ready again", func(i int) bool { return f.ready(i) == 200 })
	f.equal("it allows no more", f.takes("fixed", "kim", 10), 0)
	f.each("and it has the bans", func(i int) bool { return f.refuses(i, "knocking", "host", "b.example", "path", "/knock") })
	f.lists("all lists agree", all)
	f.eventually("there are three servers again, and the one that was killed is left out", func(i int) bool { return f.status(i).Nodes == 3 })

	// Redis is away.
	f.redis.Kill()
	f.eventually("no server is ready while Redis is away", func(i int) bool { f.allows(i, "sliding", "nobody"); return f.ready(i) == 503 })
	f.equal("three servers allow their shares of 10", f.takes("sliding", "mallory", 10), 9)
	f.equal("a rule that is closed allows nothing", f.takes("closed", "mallory", 10), 0)
	f.equal("one that is open allows all", f.takes("open", "mallory", 10), 30)
	f.each("bans hold", func(i int) bool { return f.refuses(i, "knocking", "host", "b.example", "path", "/knock") })
	f.lists("all lists agree", all)
	f.each("a ban by hand is an error", func(i int) bool {
		return strings.HasPrefix(f.say(i, "BAN", "sliding", "mallory", "1h"), "OVERLOAD the store of limits failed")
	})

	// Redis is back, empty.
	must.Do(t, f.redis.Run())
	f.eventually("all servers are ready again", func(i int) bool { f.allows(i, "sliding", "nobody"); return f.ready(i) == 200 })
	f.each("bans that were in force before hold", func(i int) bool { return f.refuses(i, "knocking", "host", "b.example", "path", "/knock") })
	f.lists("all lists agree", all)
	f.equal("limits are shared exactly again", f.takes("sliding", "trudy", 10), 10)

	for i, s := range f.servers {
		if err := s.end(); err != nil {
			t.Errorf("server %d ends with %v", i+1, err)
		}
	}
}

// start starts server i.
func (f *fleet) start(i int) {
	f.Helper()
	f.servers[i] = serve(f, "--rules", f.rules, "--rules-poll", "never", "--store", "unix://"+f.redis.Socket()+"?dial_timeout=1m&write_timeout=1m", "--store-timeout", "10s")
	f.talkers[i] = f.servers[i].dial()
}

// equal fails the test unless got is want.
func (f *fleet) equal(sentence string, got, want any) {
	f.Helper()
	if got != want {
		f.Fatalf("%s: %v, want %v", sentence, got, want)
	}
}

// each fails the test unless ok is true for each server.
func (f *fleet) each(sentence string, ok func(i int) bool) {
	f.Helper()
	for i := range f.servers {
		if !ok(i) {
			f.Fatalf("%s: not on server %d\n%s", sentence, i+1, f.servers[i].log.String())
		}
	}
}

// eventually is each for what reaches the other servers a moment later.
func (f *fleet) eventually(sentence string, ok func(i int) bool) {
	f.Helper()
	f.each(sentence, func(i int) bool { return eventually(func() bool { return ok(i) }) })
}

// say sends a command to server i.
func (f *fleet) say(i int, command ...string) string { return f.talkers[i].say(command...) }

// allows takes once under a rule.
func (f *fleet) allows(i int, rule, key string) bool {
	f.Helper()
	answer := f.say(i, "TAKE", rule, key)
	if !strings.HasPrefix(answer, "[") {
		f.Fatalf("TAKE %s %s on server %d: %s", rule, key, i+1, answer)
	}
	return strings.HasPrefix(answer, "[1 ")
}

// refuses reports whether a ban of the rule refuses an event.
func (f *fleet) refuses(i int, rule string, event ...string) bool {
	answer := f.say(i, append([]string{"CHECK"}, event...)...)
	return strings.HasPrefix(answer, "[0 ") && strings.Contains(answer, " "+rule+" ") && !strings.HasSuffix(answer, " 0]")
}

// takes takes n times on each server, on all at once, and returns how many are allowed.
func (f *fleet) takes(rule, key string, n int) int { return f.takesOn(rule, key, n, 0, 1, 2) }

func (f *fleet) takesOn(rule, key string, n int, servers ...int) (allowed int) {
	f.Helper()
	counts := make([]int, len(f.servers))
	var all sync.WaitGroup
	for _, i := range servers {
		all.Go(func() {
			for range n {
				if strings.HasPrefix(f.say(i, "TAKE", rule, key), "[1 ") {
					counts[i]++
				}
			}
		})
	}
	all.Wait()
	for _, n := range counts {
		allowed += n
	}
	return allowed
}

// ready returns the status of /readyz.
func (f *fleet) ready(i int) int {
	w := must.Get(http.Get(f.servers[i].http + "/readyz"))(f)
	w.Body.Close()
	return w.StatusCode
}

// status returns the status of the store at server i.
func (f *fleet) status(i int) api.StoreStatus {
	f.Helper()
	var s api.Status
	if err := json.Unmarshal(get(f.T, f.servers[i].http+"/v1/status"), &s); err != nil || s.Store == nil {
		f.Fatalf("the status has no store: %v", err)
	}
	return *s.Store
}

// lately runs a command of an operator against server i.
func (f *fleet) lately(i int, args ...string) (code int, output string) {
	var out bytes.Buffer
	code = run(f.Context(), append(args, "--addr", f.servers[i].http), strings.NewReader(""), &out, &out)
	return code, out.String()
}

// lists waits until these bans, and no others, are what each server answers to RESP, HTTP and lately bans.
func (f *fleet) lists(sentence string, want []string) {
	f.Helper()
	for i := range f.servers {
		var got [3][]string
		agree := func() bool {
			got[0] = nil
			v, err := f.talkers[i].do("BANS")
			if err != nil {
				f.Fatalf("%s: BANS on server %d: %v", sentence, i+1, err)
			}
			for _, b := range v.Elems {
				got[0] = append(got[0], b.Elems[0].Text+" "+strings.ReplaceAll(b.Elems[1].Text, "\t", ","))
			}
			got[1] = banNames(f, get(f.T, f.servers[i].http+"/v1/bans"))
			code, text := f.lately(i, "bans", "--json")
			if code != exitOK {
				f.Fatalf("%s: lately bans on server %d: %s", sentence, i+1, text)
			}
			got[2] = banNames(f, []byte(text))
			return !slices.ContainsFunc(got[:], func(names []string) bool {
				slices.Sort(names)
				return !slices.Equal(names, want)
			})
		}
		if !eventually(agree) {
			f.Fatalf("%s: on server %d RESP, HTTP and lately bans list %q, want %q", sentence, i+1, got, want)
		}
	}
}

// banNames returns the bans of a JSON answer, each as its rule and key.
func banNames(f *fleet, text []byte) (names []string) {
	f.Helper()
	var page struct{ Bans []api.Ban }
	if err := json.Unmarshal(text, &page); err != nil {
		f.Fatalf("%v: %.200s", err, text)
	}
	for _, b := range page.Bans {
		names = append(names, b.Rule+" "+strings.Join(b.Text, ","))
	}
	return names
}
