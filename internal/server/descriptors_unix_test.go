//go:build unix

package server

import (
	"syscall"
	"testing"
)

// A server that starts with few descriptors has fewer connections.
func TestServerWithFewDescriptors(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = 1000
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0"}, "test", nil)
	if restore := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); restore != nil {
		t.Fatal(restore)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if n := s.config.MaxConnections; n != 436 {
		t.Errorf("%d connections of each listener, want 436", n)
	}
}
