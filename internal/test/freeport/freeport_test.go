package freeport

import (
	"net"
	"strconv"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestAddr has the system choose a thousand ports: none is among the ports of Addr, on which
// a test can listen.
func TestAddr(t *testing.T) {
	for range 100 {
		l := must.Get(net.Listen("tcp", Addr(t)))(t)
		l.Close()
	}
	for range 1000 {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		if n, err := strconv.Atoi(port); err != nil || n >= first && n <= last {
			t.Fatalf("the system chose port %s, %v: Addr may return it", port, err)
		}
	}
}
