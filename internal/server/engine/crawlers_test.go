package engine_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/dnstest"
	"github.com/lately-go/lately/match"
)

// TestCrawlersAreAllowed bans a crawler and a client that only says it is one, and allows the first once
// DNS has answered.
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
	e, err := engine.New(engine.Config{Rules: parse(t, text), Resolver: dns.Resolver()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := e.Session()
	check := func(client, agent string) bool {
		d, err := c.Check(event(c, "client", client, "path", "/", "agent", agent), 1)
		if err != nil {
			t.Fatal(err)
		}
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
	if all := e.Exempted(); !all.Overlaps(netip.MustParsePrefix("203.0.113.1/32")) || all.Overlaps(netip.MustParsePrefix("203.0.113.2/32")) {
		t.Error("the enforced bans would have the crawler, or not the other client")
	}
	var ev match.Event
	ev.SetString(match.Client, "203.0.113.1")
	if d := c.CheckLogged(&ev); !d.Allowed {
		t.Error("the crawler is refused in a log")
	}

	// Without crawlers in the rules, it is a client like others.
	if _, err := e.Replace(parse(t, "version: 1\nlimits:\n  - {name: all, key: client, limit: 0 per 1h}\n"), true); err != nil {
		t.Fatal(err)
	}
	await("the crawler is another client", func() bool { return !check("203.0.113.1", agent) })
}

func bansOf(t *testing.T, e *engine.Engine) (n int) {
	for _, err := range e.Bans() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
