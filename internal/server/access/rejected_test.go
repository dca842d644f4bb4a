package access_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// TestRejectedLogins rejects 100,000 logins in ten seconds: each is counted, and there
// is a line per second that says how many there were.
func TestRejectedLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := access.NewRejectedLogins(slog.New(slog.NewTextHandler(&log, nil)))
		peer := netip.MustParseAddr("192.0.2.7")
		for range 10 {
			for range 10_000 {
				r.Add(peer)
			}
			time.Sleep(time.Second)
		}
		if n := r.Total(); n != 100_000 {
			t.Errorf("%d logins were counted; want 100000", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 10 {
			t.Errorf("%d lines were logged; want 10:\n%.500s", n, log.String())
		}
		if !strings.Contains(log.String(), "peer=192.0.2.7 rejected=10000") {
			t.Errorf("no line has the peer and the number:\n%.500s", log.String())
		}
	})
}
