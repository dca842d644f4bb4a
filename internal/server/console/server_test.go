package console_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/browsertest"
	"github.com/lately-go/lately/internal/test/must"
)

const liveRules = `version: 1
client: {ipv4: 32, ipv6: 64}
counters:
  requests: {key: client, spans: [1s, 1m, 1h, 24h]}
  paths: {key: path, spans: [1s, 1m, 1h]}
limits:
  - {name: per-client, key: client, limit: 40 per 10s, ban: {after: 100 refusals in 1m, for: 10m, factor: 2, max: 24h}}
  - {name: login, when: {method: POST, path: /login}, key: client, limit: 5 per 10m, ban: {after: 20 refusals in 1m, for: 1h}}
  - {name: search, when: {path: /search}, key: client, limit: 2 per 1s, mode: shadow}
bans:
  - {name: flood, key: client, after: 600 hits in 1m, for: 1h}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 30 per 2s, hold: 60s}
`

// The console of a real server that is sent the project's own generated sample: what
// it shows is what the engine counts, and what it changes is changed.
func TestConcurrentConsole(t *testing.T) {
	b := browsertest.Start(t)
	s, url := liveServer(t)
	p := b.Open(t, url, 1440, 900)
	p.Wait(isLive + ` && document.querySelector('#demo').hidden`)
	replaySample(t, s.Engine(), 40_000, 3*time.Second)
	to(p, "keys")
	p.Wait(`[...document.querySelectorAll('.toprow .key')].some((k) => k.textContent === '203.0.113.245')`)
	to(p, "bans")
	p.Wait(`[...document.querySelectorAll('tbody .key')].some((k) => k.textContent === '203.0.113.245')`)
	bans := held(s.Engine())
	if bans == 0 {
		t.Fatal("no bans")
	}
	p.Click("tbody button")
	p.Wait(`document.querySelector('dialog h2').textContent === 'Unban this key?'`)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog')`)
	for end := time.Now().Add(browsertest.Patience); held(s.Engine()) != bans-1 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := held(s.Engine()); left != bans-1 {
		t.Errorf("%d bans hold after one of %d was ended", left, bans)
	}
	to(p, "rules")
	p.Wait(`document.body.textContent.includes('per-client')`)
	to(p, "overview")
	p.Wait(isLive)
	p.Clean()
}

// TestConcurrentPagesOfBans reads 250 bans of a real server page by page, there and back.
func TestConcurrentPagesOfBans(t *testing.T) {
	b := browsertest.Start(t)
	s, url := liveServer(t)
	for i := range 250 {
		must.Get(s.Engine().Bans().Ban("per-client", []string{fmt.Sprintf("192.0.2.%d", i)}, time.Hour, "", ""))(t)
	}
	p := b.Open(t, url+"/#/bans", 1440, 900)
	p.Wait(isLive)
	// page waits for a page and returns its keys. Bans that began in the same millisecond
	// are in an order of the server's own.
	page := func(text string, back, further bool) (keys []string) {
		t.Helper()
		p.Wait(fmt.Sprintf(`document.querySelector('.pager span').textContent === %q
			&& document.querySelector('.pager button:first-child').disabled === %t && document.querySelector('.pager button:last-child').disabled === %t`, text, !back, !further))
		p.JS(`[...document.querySelectorAll('tbody .key')].map((k) => k.textContent)`, &keys)
		return keys
	}
	first := page("1 to 100 of 250", false, true)
	p.Click(".pager button:last-child")
	second := page("101 to 200 of 250", true, true)
	p.Click(".pager button:last-child")
	third := page("201 to 250 of 250", true, false)
	all := slices.Concat(first, second, third)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != 250 || len(all) != 250 {
		t.Errorf("the pages have %d bans, %d of them different, want 250", len(all), n)
	}
	p.Click(".pager button:first-child")
	page("101 to 200 of 250", true, true) // it is longer, so the button moves
	p.Click(".pager button:first-child")
	if again := page("1 to 100 of 250", false, true); !slices.Equal(again, first) {
		t.Errorf("the first page is %q, was %q", again, first)
	}
	p.Clean()
}

// held returns how many bans hold.
func held(e *engine.Engine) int {
	n := 0
	for range e.Bans().All() {
		n++
	}
	return n
}

// liveServer runs a server with liveRules until the test ends.
func liveServer(t *testing.T) (s *server.Server, url string) {
	t.Helper()
	t.Chdir(t.TempDir()) // the console shows the name of the file as it was given
	must.Do(t, os.WriteFile("rules.yaml", []byte(liveRules), 0o600))
	return runServer(t, server.Config{RulesFiles: []string{"rules.yaml"}, RESP: server.Off, HTTP: "127.0.0.1:0"})
}

// runServer runs a server until the test ends.
func runServer(t *testing.T, c server.Config) (s *server.Server, url string) {
	t.Helper()
	s = must.Get(server.New(c, "v0.1.0", nil))(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	_, addr := s.Addresses()
	return s, "http://" + addr
}

// replaySample has the engine judge that many events of the sample, live, spread over
// that time.
func replaySample(t *testing.T, e *engine.Engine, n int, lasting time.Duration) {
	var log bytes.Buffer
	if _, err := accesslogtest.Write(&log, accesslogtest.Config{Lines: n, Duration: time.Hour}); err != nil {
		t.Error(err)
		return
	}
	c := e.Session()
	began, i := time.Now(), 0
	for line := range strings.Lines(log.String()) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[5], `"`) {
			continue
		}
		i++
		if ahead := time.Duration(i)*lasting/time.Duration(n) - time.Since(began); ahead > 5*time.Millisecond {
			time.Sleep(ahead)
		}
		path, _, _ := strings.Cut(f[6], "?")
		ev := c.Event()
		ev.SetNamedString("client", f[0])
		ev.SetNamedString("method", f[5][1:])
		ev.SetNamedString("path", path)
		ev.SetNamedString("status", f[8])
		c.Check(ev, 1, engine.Terms{})
	}
}
