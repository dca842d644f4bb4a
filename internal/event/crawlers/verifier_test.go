package crawlers

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/dnstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A running verifier is one with the crawlers that it has published.
type running struct {
	*Verifier
	added chan Client

	mu  sync.Mutex
	all address.Set
}

func run(t *testing.T, dns *dnstest.Server, operators ...string) *running {
	r := &running{Verifier: New(dns.Resolver()), added: make(chan Client, 100)}
	r.Use(operators)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		r.Run(ctx, func(all []netip.Prefix, added *Client) {
			r.mu.Lock()
			r.all = address.NewSet(all...)
			r.mu.Unlock()
			if added != nil {
				r.added <- *added
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	return r
}

// has reports whether a client is verified.
func (r *running) has(client string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Contains([]byte(client))
}

// await waits until f is true.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 10_000 {
		if f() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func refuse(v *running, client, agent string) { v.Refused([]byte(client), []byte(agent)) }

const googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

// TestCrawlers verifies crawlers, and clients that only claim to be crawlers.
func TestCrawlers(t *testing.T) {
	dns := dnstest.New(t)
	crawler := func(addr, host string) {
		dns.Name(addr, host)
		dns.Address(host, addr)
	}
	crawler("203.0.113.1", "crawl-203-0-113-1.googlebot.com.")
	crawler("2001:db8::1", "Crawl-6.GoogleBot.com.")
	dns.Address("crawl-6.googlebot.com.", "2001:db8::1")
	crawler("203.0.113.2", "msnbot-203-0-113-2.search.msn.com.")
	crawler("203.0.113.3", "spider.yandex.com.")
	dns.Name("203.0.113.4", "nothing.example.")
	crawler("203.0.113.4", "second.googlebot.com.")

	dns.Name("203.0.113.11", "crawl-203-0-113-1.googlebot.com.") // whose address is another
	dns.Name("203.0.113.12", "made-up.googlebot.com.")           // which does not exist
	crawler("203.0.113.13", "crawl.evilgooglebot.com.")
	crawler("203.0.113.14", "crawl.googlebot.com.evil.example.")
	crawler("203.0.113.15", "googlebot.com.")

	v := run(t, dns, "google", "bing")
	for _, client := range []string{"203.0.113.1", "2001:db8::1", "203.0.113.2:4711", "203.0.113.4"} {
		refuse(v, client, googlebot+" bingbot")
		<-v.added
		if !v.has(client) {
			t.Errorf("%s is not verified", client)
		}
	}
	fakes := []string{"203.0.113.3", "203.0.113.11", "203.0.113.12", "203.0.113.13", "203.0.113.14", "203.0.113.15", "203.0.113.16"}
	for _, client := range fakes {
		refuse(v, client, "")
	}
	await(t, "all fakes are asked about", func() bool { return v.Stats().Others == uint64(len(fakes)) })
	for _, client := range fakes {
		if v.has(client) {
			t.Errorf("%s is verified", client)
		}
	}
	if s := v.Stats(); s.Verified != 4 || s.Crawlers != 4 || s.Failures != 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}

	// Known clients, and clients without a claim, cause no queries.
	asked := dns.Questions()
	for _, client := range append(fakes, "203.0.113.1") {
		refuse(v, client, googlebot)
	}
	for _, client := range []string{"10.0.0.1", "127.0.0.1", "fe80::1", "crawler.example", "203.0.113.0/24", ""} {
		refuse(v, client, googlebot)
	}
	refuse(v, "203.0.113.20", "curl/8")
	refuse(v, "203.0.113.21", "YandexBot/3.0") // an operator that is not enabled
	refuse(v, "203.0.113.22", googlebot)
	await(t, "the last is asked about", func() bool { return v.Stats().Others == uint64(len(fakes))+1 })
	if got := dns.Questions() - asked; got > 2 { // the resolver may query twice
		t.Errorf("%d queries about known clients and others", got)
	}

	// Crawlers of an operator that is no longer enabled count as other clients.
	v.Use([]string{"bing", "yandex"})
	await(t, "crawlers of google are other clients", func() bool { return !v.has("203.0.113.1") })
	if !v.has("203.0.113.2") {
		t.Error("the crawler of bing is no longer verified")
	}
	await(t, "the crawler of yandex is asked about again", func() bool {
		refuse(v, "203.0.113.3", "")
		return v.has("203.0.113.3")
	})

	// Answers end.
	all, changed := v.sweep(time.Now().Add(crawlerFor+time.Minute), false)
	if v.mu.Lock(); !changed || len(all) != 0 || len(v.known) != 0 {
		t.Errorf("a day later %d answers are kept", len(v.known))
	}
	v.mu.Unlock()
	v.Use(nil)
	asked = dns.Questions()
	refuse(v, "203.0.113.1", googlebot)
	if v.mu.Lock(); len(v.known) != 0 || dns.Questions() != asked {
		t.Error("a query about a client without an operator")
	}
	v.mu.Unlock()
}

// TestFlood refuses many clients that claim to be crawlers, while DNS does not answer.
func TestFlood(t *testing.T) {
	dns := dnstest.New(t)
	dns.Hold()
	v := run(t, dns, "google")
	const clients = 5000
	for i := range clients {
		refuse(v, fmt.Sprintf("203.%d.%d.1", i>>8, i&255), googlebot)
	}
	v.mu.Lock()
	waiting := len(v.known)
	v.mu.Unlock()
	if most := maxQueued + inParallel + 1; waiting > most {
		t.Errorf("%d clients are waiting; want at most %d", waiting, most)
	}
	if s := v.Stats(); s.Dropped < clients-uint64(waiting) {
		t.Errorf("%d clients were dropped, %d are waiting, of %d", s.Dropped, waiting, clients)
	}
}

// TestMemoryFullOfOtherClients fills the memory for answers: those about other clients are evicted, those about crawlers
// stay.
func TestMemoryFullOfOtherClients(t *testing.T) {
	for _, operator := range []string{"", "google"} {
		v := New(nil)
		v.Use([]string{"google"})
		for i := range maxKnown {
			addr := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})
			v.known[addr] = answer{time.Now().Add(time.Hour), Client{Addr: addr, Operator: operator}}
		}
		v.Refused([]byte("203.0.113.1"), []byte(googlebot))
		if _, ok := v.known[netip.MustParseAddr("203.0.113.1")]; ok != (operator == "") || len(v.known) != maxKnown {
			t.Errorf("operator %q: a query about the client: %t; %d answers", operator, ok, len(v.known))
		}
	}
}

// TestOtherClientsCostLittle adds clients that are not crawlers while many answers are stored: refusals wait for the same
// lock, so an add must not walk all stored answers, which would count the verified ones.
func TestOtherClientsCostLittle(t *testing.T) {
	v := New(nil)
	v.Use([]string{"google"})
	until := time.Now().Add(time.Hour)
	v.verified.Store(-1)
	if _, crawler := v.learn(answer{until, Client{Addr: netip.MustParseAddr("203.0.113.1")}}); crawler || v.verified.Load() != -1 {
		t.Errorf("one that is no crawler: a crawler: %t; all were counted: %t", crawler, v.verified.Load() != -1)
	}
	all, crawler := v.learn(answer{until, Client{Addr: netip.MustParseAddr("203.0.113.2"), Operator: "google"}})
	if !crawler || v.verified.Load() != 1 || len(all) != 1 || all[0].Addr() != netip.MustParseAddr("203.0.113.2") {
		t.Errorf("a crawler: %t; %d are verified", crawler, v.verified.Load())
	}
}
