package server

import (
	"testing"

	"github.com/lately-go/lately/internal/redistest"
)

// TestServersShareOutage takes the store away from two servers: each has half of a limit.
func TestServersShareOutage(t *testing.T) {
	redis := redistest.Own(t)
	nodes := []*node{newNode(t, storeOf(redis)), newNode(t, storeOf(redis))}
	for _, n := range nodes {
		n.wantReady(200)
		eventually(t, "the servers know of each other", func() bool { return n.store.Nodes() == len(nodes) })
	}
	redis.Kill()
	for i, n := range nodes {
		for j, want := range []bool{true, true, false} {
			if got := n.take("shared", "192.0.2.1"); got != want {
				t.Errorf("server %d, decision %d: allowed %v, want %v: each has two of four", i, j, got, want)
			}
		}
	}
}
