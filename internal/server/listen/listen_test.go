package listen_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// TestRejectedLogins rejects 100,000 logins in ten seconds: each is counted, and a few
// lines per second are logged.
func TestRejectedLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := must.Get(engine.New(engine.Config{}))(t)
		defer e.Close()
		l := listen.New("http", listen.Config{Engine: e, Log: slog.New(slog.NewTextHandler(&log, nil))})
		peer := netip.MustParseAddr("192.0.2.7")
		for range 10 {
			for range 10_000 {
				l.RejectLogin(peer)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait() // for the line of the last second
		if n := l.Rejected.Load(); n != 100_000 {
			t.Errorf("%d logins were counted; want 100000", n)
		}
		if n := strings.Count(log.String(), "\n"); n < 10 || n > 250 {
			t.Errorf("%d lines were logged; want about 20 a second:\n%.500s", n, log.String())
		}
		if !strings.Contains(log.String(), "peer=192.0.2.7") || !strings.Contains(log.String(), "suppressed=") {
			t.Errorf("no line has the peer, or the number:\n%.500s", log.String())
		}
	})
}
