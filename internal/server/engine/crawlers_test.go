package engine_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/dnstest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestCrawlersAreAllowed bans a crawler and a client that only claims to be one, and allows the first after DNS has
// answered.
func TestCrawlersAreAllowed(t *testing.T) {
	dns := dnstest.New(t)
	dns.Name("203.0.113.1", "crawl-1.googlebot.com.")
	dns.Address("crawl-1.googlebot.com.", "203.0.113.1")
	dns.Name("203.0.113.2", "crawl-1.googlebot.com.")
	dns.Hold()
	const text = `version: 1
limits:
  - {name: all, key: client, limit: 1 per 1h, ban: {after: 1 hit in 1h, for: 1d}}
  - {name: pairs, key: [client, path], limit: 1 per 1h}
allow: {crawlers: google}
`
	e := must.Get(engine.New(engine.Config{Rules: parse(t, text), Resolver: dns.Resolver()}))(t)
	defer e.Close()
	c := e.Session()
	check := func(client, agent string) bool {
		d := must.Get(c.Check(event(c, "client", client, "path", "/", "agent", agent), 1, engine.Terms{}))(t)
		return d.Allowed
	}
	const agent = "Mozilla/5.0 (compatible; Googlebot/2.1)"
	for range 5 {
		check("203.0.113.1", agent)
		check("203.0.113.2", agent)
	}
	if got := bansOf(t, e); got != 2 {
		t.Fatalf("%d bans hold before DNS answers; want 2", got)
	}
	dns.Release()
	await := func(what string, f func() bool) {
		t.Helper()
		for range 60_000 {
			if f() {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("never: %s; %+v", what, e.Status().Crawlers)
	}
	await("DNS answers about both", func() bool {
		s := e.Status().Crawlers
		return s.Verified == 1 && s.Crawlers == 1 && s.Others == 1
	})
	await("the ban of the crawler ends", func() bool { return bansOf(t, e) == 1 })
	for range 5 {
		if !check("203.0.113.1", "another agent") || check("203.0.113.2", agent) {
			t.Fatal("the crawler is refused, or the other client is not")
		}
	}
	for range 3 {
		if d, err := c.Take("pairs", 1, "203.0.113.1", "/a"); err != nil || !d.Allowed {
			t.Errorf("the crawler is refused by its key: %+v, %v", d, err)
		}
	}
	if !e.Allows(netip.MustParsePrefix("203.0.113.1/32")) || e.Allows(netip.MustParsePrefix("203.0.113.2/32")) {
		t.Error("the enforced bans would have the crawler, or not the other client")
	}
	var ev match.Event
	ev.SetString(match.Client, "203.0.113.1")
	if d := c.CheckLogged(&ev); !d.Allowed {
		t.Error("the crawler is refused in a log")
	}

	again := restored(t, text, saved(t, e)).Session() // another process has the counts, and the crawler
	for range 5 {
		if d, err := again.Check(event(again, "client", "203.0.113.1", "path", "/"), 1, engine.Terms{}); err != nil || !d.Allowed {
			t.Fatalf("after a restart, the crawler is refused: %+v, %v", d, err)
		}
	}

	// Without crawlers in the rules, it is a client like others.
	must.Get(e.Replace(parse(t, "version: 1\nlimits:\n  - {name: all, key: client, limit: 0 per 1h}\n"), true))(t)
	await("the crawler is another client", func() bool { return !check("203.0.113.1", agent) })
}

// TestCrawlerOfAnAlternative has a crawler that is counted by a key with alternatives, and is judged by that key.
func TestCrawlerOfAnAlternative(t *testing.T) {
	dns := dnstest.New(t)
	dns.Name("203.0.113.1", "crawl-1.googlebot.com.")
	dns.Address("crawl-1.googlebot.com.", "203.0.113.1")
	e := must.Get(engine.New(engine.Config{Resolver: dns.Resolver(), Rules: parse(t, `version: 1
limits:
  - {name: either, key: user | client, limit: 9 per 1h, ban: {after: 1 hit in 1h, for: 1d}}
allow: {crawlers: google}
`)}))(t)
	defer e.Close()
	c := e.Session()
	for n, allowed := 0, 0; allowed < 5; n++ { // without the crawlers, at most one in a row
		d := must.Get(c.Take("either", 1, "client:203.0.113.1"))(t)
		if allowed++; !d.Allowed || bansOf(t, e) > 0 {
			allowed = 0
		}
		if n == 30_000 {
			t.Fatalf("the crawler is never allowed, or its ban never ends: %+v, %d bans, %+v", d, bansOf(t, e), e.Status().Crawlers)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestUnbanOfProxiesByAlternatives ends the ban of a proxy that has sent requests without their client, under a key with alternatives.
func TestUnbanOfProxiesByAlternatives(t *testing.T) {
	e := must.Get(engine.New(engine.Config{Rules: parse(t, "version: 1\nbans:\n  - {name: either, key: user | client, after: 1 hit in 1h, for: 1d}\n")}))(t)
	defer e.Close()
	c := e.Session()
	for range 3 {
		must.Get(c.Check(event(c, "client", "proxy:192.0.2.7"), 1, engine.Terms{}))(t)
	}
	if n, err := e.Bans().Unban("either", []string{"client:192.0.2.7"}); n != 1 || err != nil {
		t.Errorf("%d bans ended, %v; want the ban of the proxy", n, err)
	}
}

func bansOf(t *testing.T, e *engine.Engine) (n int) {
	for _, err := range e.Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
