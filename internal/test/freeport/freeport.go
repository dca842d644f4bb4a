// Package freeport gives tests addresses for programs that cannot choose a port themselves,
// and for listeners that are closed and opened again.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The ports that Addr returns are from first to last. Systems take the ports of connections
// and of listeners on port 0 from above them: Linux from 32768 on. So no other connection
// gets such a port between Addr and the program that listens on it.
const first, last = 15_000, 29_999

// Addr returns an address on loopback without a listener. Another process that calls Addr may get the same one until a
// listener uses it: once in some 10,000 calls at the same moment.
func Addr(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1))
		l, failed := net.Listen("tcp", addr)
		if err = failed; err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatalf("no port on loopback is free: %v", err)
	return ""
}
