//go:build unix

package server

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// A server that starts with few descriptors has fewer connections, and logs a warning if the settings ask for more.
func TestServerWithFewDescriptors(t *testing.T) {
	var was syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	var log safeBuffer
	few := was
	few.Cur = 1000
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	s, err := New(Config{RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0", Limits: access.Limits{MaxConnections: 500}}, "test", slog.New(slog.NewTextHandler(&log, nil)))
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if n := s.config.MaxConnections; n != 436 {
		t.Errorf("%d connections of each listener, want 436", n)
	}
	if !strings.Contains(log.String(), "max_connections=500 lowered_to=436") {
		t.Errorf("in the log: %q", log.String())
	}
}
