package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// A names answers for the name of a fleet.
type names struct {
	mu    sync.Mutex
	hosts []string
	err   error
	asked int
}

func (n *names) set(err error, hosts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts, n.err = hosts, err
}

func (n *names) lookup(_ context.Context, host string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if host != "lately.test" {
		return nil, fmt.Errorf("%s was looked up", host)
	}
	return n.hosts, n.err
}

// settled waits until the name was looked up twice more.
func (n *names) settled(t testing.TB) {
	t.Helper()
	count := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.asked
	}
	before := count()
	until(t, "the name is looked up", func() bool { return count() >= before+2 })
}

// startLoopbacks starts servers on 127.0.0.1, 127.0.0.2 and so on, with one port.
func startLoopbacks(t *testing.T, n int) (servers []*testServer, port string) {
	t.Helper()
	_, port, _ = net.SplitHostPort(freeport.Addr(t))
	probe, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("SKIP: this system has one loopback address: %v", err)
	}
	probe.Close()
	for i := range n {
		servers = append(servers, startServerAt(t, listen.Config{}, fmt.Sprintf("127.0.0.%d:%s", i+2, port)))
	}
	return servers, port
}

// The nodes of a name come and go, and failures to look it up change nothing.
func TestFleetDiscovers(t *testing.T) {
	servers, port := startLoopbacks(t, 3)
	n := &names{}
	n.set(errors.New("no such host"))
	f := mustFleet(t, FleetConfig{Discover: "lately.test:" + port, lookupEvery: 5 * time.Millisecond, lookup: n.lookup})
	if _, err := f.Take(t.Context(), "many", 1, "ada"); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("the error is %v", err)
	}
	addrs := func() (all []string) {
		for _, node := range f.Nodes() {
			all = append(all, node.Addr)
		}
		return all
	}
	want := func(hosts ...string) {
		t.Helper()
		n.settled(t)
		for i := range hosts {
			hosts[i] = net.JoinHostPort(hosts[i], port)
		}
		if got := addrs(); fmt.Sprint(got) != fmt.Sprint(hosts) {
			t.Fatalf("nodes are %v, want %v", got, hosts)
		}
	}
	n.set(nil, "127.0.0.4", "127.0.0.2", "127.0.0.4")
	want("127.0.0.2", "127.0.0.4")
	for i := range 50 {
		must.Get(f.Take(t.Context(), "many", 1, fmt.Sprint("user-", i)))(t)
	}
	n.set(errors.New("no such host"))
	want("127.0.0.2", "127.0.0.4")
	n.set(nil)
	want("127.0.0.2", "127.0.0.4")
	connections := servers[0].resp.Conns
	n.set(nil, "127.0.0.2", "127.0.0.3")
	want("127.0.0.2", "127.0.0.3")
	if _, accepted, _ := connections.Counts(); accepted != 1 {
		t.Errorf("the node that stayed has accepted %d connections, want the first", accepted)
	}
	until(t, "the connection to the node that went is closed", func() bool {
		open, _, _ := servers[2].resp.Conns.Counts()
		return open == 0
	})
	for i := range 50 {
		must.Get(f.Take(t.Context(), "many", 1, fmt.Sprint("user-", i)))(t)
	}
	if a, b, c := servers[0].decided(), servers[1].decided(), servers[2].decided(); a+b+c != 100 || a == 0 || b == 0 || c == 0 {
		t.Errorf("the nodes have decided %d, %d and %d of 100", a, b, c)
	}
}

// Two clients with different lists: a key whose nodes differ may be allowed the limit on each of the two, and no key more;
// keys of nodes that both have and choose are limited as with one client.
func TestFleetsWithDifferentLists(t *testing.T) {
	_, addrs := startServers(t, 3)
	const limit = 100
	both, some := mustFleet(t, FleetConfig{Nodes: addrs}), mustFleet(t, FleetConfig{Nodes: addrs[:2]})
	for i := range 3 {
		for _, key := range keysOf("login", addrs, i, 5) {
			allowed := 0
			for n := range 3 * limit {
				f := both
				if n%2 == 0 {
					f = some
				}
				d := must.Get(f.Take(t.Context(), "login", 1, key))(t)
				if d.Allowed {
					allowed++
				}
			}
			want := limit
			if i == 2 { // this node is in one list only
				want = 2 * limit
			}
			if allowed != want {
				t.Errorf("key %s of node %d was allowed %d times, want %d", key, i, allowed, want)
			}
		}
	}
}
