//go:build unix

package server

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// On SIGTERM a server first reports that it is not ready, and answers everything else as before; it closes its ports after
// the delay, or at a second signal.
func TestTerminate(t *testing.T) {
	for _, delay := range []time.Duration{-1, time.Millisecond, time.Hour} {
		c := deployed(t)
		c.RESP, c.HTTP, c.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", delay
		s := must.Get(New(c, "test", nil))(t)
		resp, http := s.Addresses()
		url := "http://" + http
		ended := make(chan error, 1)
		go func() { ended <- s.Run(context.WithoutCancel(t.Context())) }()
		if code, text := got(t, url+"/readyz"); code != 200 {
			t.Errorf("before the end /readyz: %d %s", code, text)
		}
		s.Terminate()
		if delay == time.Hour {
			eventually(t, "/readyz says no", func() bool {
				code, text := got(t, url+"/readyz")
				return code == 503 && strings.Contains(text, "about to end")
			})
			for _, path := range []string{"/healthz", "/v1/status"} {
				if code, text := got(t, url+path); code != 200 {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			conn, err := net.Dial("tcp", resp)
			if err != nil {
				t.Errorf("the RESP port is closed: %v", err)
			} else {
				conn.Close()
			}
			s.Terminate()
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute): // else the whole test run hangs
			t.Fatalf("delay %v: the server has not ended", delay)
		}
		if conn, err := net.Dial("tcp", http); err == nil {
			conn.Close()
			t.Error("the HTTP port is open after the end")
		}
	}
}
