package console_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/test/browsertest"
	"github.com/lately-go/lately/internal/test/must"
)

// TestConcurrentDemo opens the console of a demo: each view shows something, and a click ends
// the made-up traffic. With LATELY_PICTURES, the name of a folder, it goes on for more than a
// minute and writes the pictures of the README there.
func TestConcurrentDemo(t *testing.T) {
	pictures := os.Getenv("LATELY_PICTURES")
	if pictures != "" {
		folder := must.Get(filepath.Abs(pictures))(t)
		t.Setenv("LATELY_SCREENSHOTS", folder)
	}
	b := browsertest.Start(t)
	s, url := runServer(t, server.Config{Demo: true, RESP: server.Off, HTTP: "127.0.0.1:0"})
	p := b.Open(t, url, 1280, 800)
	p.Wait(isLive)
	for _, view := range []string{"overview", "keys", "bans", "rules", "hot"} {
		to(p, view)
	}
	to(p, "overview")
	if pictures != "" {
		time.Sleep(80 * time.Second) // for a chart that is full
		for _, scheme := range []string{"dark", "light"} {
			p.Media("prefers-color-scheme: "+scheme, "prefers-reduced-motion: reduce")
			p.Picture("console-" + scheme)
		}
	}
	p.Click("#demo button")
	p.Wait(`document.querySelector('#demo').hidden && document.querySelector('.toasts').textContent.includes('has ended')`)
	decided := s.Engine().Status().Totals
	time.Sleep(200 * time.Millisecond)
	if now := s.Engine().Status().Totals; now != decided {
		t.Errorf("totals were %+v, and are %+v after the traffic has ended", decided, now)
	}
	p.Clean()
}
