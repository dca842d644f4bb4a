package access_test

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
)

func TestConnLimiter(t *testing.T) {
	g := access.NewConnLimiter(3, 2)
	a, b, c := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	for i, x := range []struct {
		peer netip.Addr
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {b, false}, {c, false}} {
		if got := g.Enter(x.peer); got != x.want {
			t.Errorf("connection %d, of %v: %v", i, x.peer, got)
		}
	}
	g.Leave(a)
	if !g.Enter(c) {
		t.Error("c is refused after a has left")
	}
	g.Leave(b)
	if !g.Enter(a) || g.Enter(a) {
		t.Error("a has one connection, and may have two")
	}
	if open, accepted, refused := g.Counts(); open != 3 || accepted != 5 || refused != 4 {
		t.Errorf("%d are open, %d were let in, %d refused", open, accepted, refused)
	}
	if new(access.ConnLimiter).Enter(a) {
		t.Error("the zero ConnLimiter lets someone in")
	}
}

// An IPv6 network is one peer; an IPv4 address written as IPv6 is
// the same peer as that IPv4 address.
func TestConnLimiterPeers(t *testing.T) {
	for _, x := range []struct {
		first, second string
		same          bool
	}{
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
	} {
		g := access.NewConnLimiter(10, 1)
		first, second := netip.MustParseAddr(x.first), netip.MustParseAddr(x.second)
		if !g.Enter(first) || g.Enter(second) == x.same {
			t.Errorf("%s and %s: want one peer: %v", x.first, x.second, x.same)
			continue
		}
		g.Leave(second) // the same connection, by another name
		if g.Enter(first) != x.same {
			t.Errorf("%s has left; %s is refused", x.second, x.first)
		}
	}
	g := access.NewConnLimiter(10, 1)
	if !g.Enter(netip.Addr{}) || g.Enter(netip.Addr{}) {
		t.Error("those without an address are not one peer")
	}
}

// However many come at once, no more are open than may be, and all that is taken is
// given back.
func TestConnLimiterIsNeverExceeded(t *testing.T) {
	const most, each, clients = 5, 3, 16
	g := access.NewConnLimiter(most, each)
	var all, turned atomic.Int64
	var peers [3]atomic.Int64
	var group sync.WaitGroup
	for i := range clients {
		n := i % len(peers)
		peer := netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%d::%d", n, i))
		group.Go(func() {
			for range 2000 {
				if !g.Enter(peer) {
					turned.Add(1)
					continue
				}
				if a, p := all.Add(1), peers[n].Add(1); a > most || p > each {
					t.Errorf("%d are open, %d of peer %d", a, p, n)
				}
				peers[n].Add(-1)
				all.Add(-1)
				g.Leave(peer)
			}
		})
	}
	group.Wait()
	open, accepted, refused := g.Counts()
	if open != 0 || int64(refused) != turned.Load() || accepted+refused != clients*2000 {
		t.Errorf("%d are open, %d were let in, %d refused; %d saw themselves refused", open, accepted, refused, turned.Load())
	}
	if n := g.Peers(); n != 0 {
		t.Errorf("nobody is there, and %d peers take memory", n)
	}
	for range most {
		g.Enter(netip.Addr{})
	}
	if open, _, _ := g.Counts(); open != each {
		t.Errorf("%d connections of one peer are open, want %d", open, each)
	}
}

func TestConnLimiterDoesNotAllocate(t *testing.T) {
	g := access.NewConnLimiter(10, 10)
	peer := netip.MustParseAddr("2001:db8::1")
	g.Enter(peer)
	if n := testing.AllocsPerRun(100, func() { g.Enter(peer); g.Leave(peer) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A listener calls for each connection, and again when it is closed.
func ExampleConnLimiter() {
	limiter := access.NewConnLimiter(100, 2)
	peer := netip.MustParseAddr("192.0.2.7")
	fmt.Println(limiter.Enter(peer), limiter.Enter(peer), limiter.Enter(peer))
	limiter.Leave(peer)
	fmt.Println(limiter.Enter(peer))
	fmt.Println(limiter.Counts())
	// Output:
	// true true false
	// true
	// 2 3 1
}
