package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/wait"
)

// A node is a server of a fleet.
type node struct {
	addr     string
	hash     uint64
	commands link // decisions and counts

	// If the fleet has a Detector:
	hot      link         // reports and updates of hot keys
	watch    hotWatch     // under hot.watching
	reports  []outgoing   // by rule; of the goroutine that sends them
	underWay atomic.Int64 // reports without an answer
}

// named returns err with the address of n in front, except for what a server answered.
func (n *node) named(err error) error {
	if _, answered := errors.AsType[*Error](err); err == nil || answered {
		return err
	}
	return fmt.Errorf("%s: %w", n.addr, err)
}

// members are the nodes of a fleet.
type members struct {
	list  atomic.Pointer[[]*node] // sorted by address; nil until they are known
	found chan struct{}           // closed when the first lookup has ended

	mu  sync.Mutex
	err error // of the last lookup
}

// NodeStatus is the state of the connection to a node of a [Fleet].
type NodeStatus struct {
	Addr string
	Up   bool
	Err  error // why not; nil if the first attempt is in progress
}

// Nodes returns the nodes of f, sorted by address.
func (f *Fleet) Nodes() []NodeStatus {
	var all []NodeStatus
	for _, n := range f.members.now() {
		up, err := n.commands.status()
		all = append(all, NodeStatus{n.addr, up, err})
	}
	return all
}

// now returns the nodes, or nil if they are not known yet.
func (m *members) now() []*node {
	if list := m.list.Load(); list != nil {
		return *list
	}
	return nil
}

// nodes returns the nodes. It waits for the first lookup.
func (f *Fleet) nodes(ctx context.Context) ([]*node, error) {
	if nodes := f.members.now(); nodes != nil {
		return nodes, nil
	}
	select {
	case <-f.members.found:
	case <-f.ctx.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNoNode, context.Cause(ctx))
	}
	if nodes := f.members.now(); nodes != nil {
		return nodes, nil
	}
	f.members.mu.Lock()
	defer f.members.mu.Unlock()
	return nil, fmt.Errorf("%w: %w", ErrNoNode, f.members.err)
}

// discover looks up the nodes until f is closed. After a failure it tries again sooner.
func (f *Fleet) discover() {
	looked := sync.OnceFunc(func() { close(f.members.found) })
	for failures := 0; ; {
		err := f.lookup()
		f.members.mu.Lock()
		f.members.err = err
		f.members.mu.Unlock()
		looked()
		next := f.config.lookupEvery
		if failures++; err == nil {
			failures = 0
		} else {
			next = min(next, longestWait(failures))
		}
		if wait.For(f.ctx, next) != nil {
			return
		}
	}
}

// lookup looks up the nodes once.
func (f *Fleet) lookup() error {
	host, port, err := net.SplitHostPort(f.config.Discover)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(f.ctx, max(f.config.lookupEvery, time.Second))
	defer cancel()
	hosts, err := f.config.lookup(ctx, host)
	switch {
	case err != nil:
		return err
	case len(hosts) == 0:
		return fmt.Errorf("%s has no address", host)
	}
	addrs := make([]string, len(hosts))
	for i, h := range hosts {
		addrs[i] = net.JoinHostPort(h, port)
	}
	f.setMembers(addrs)
	return nil
}

// setMembers makes these the nodes of f. Nodes that stay keep their connections;
// removed nodes still answer the commands that they were sent.
func (f *Fleet) setMembers(addrs []string) {
	addrs = slices.Compact(slices.Sorted(slices.Values(addrs))) // a copy
	old := make(map[string]*node)
	for _, n := range f.members.now() {
		old[n.addr] = n
	}
	var list []*node
	for _, addr := range addrs {
		n := old[addr]
		if delete(old, addr); n == nil {
			n = f.newNode(addr)
		}
		list = append(list, n)
	}
	f.members.list.Store(&list)
	for _, n := range old {
		f.running.Go(func() {
			n.commands.settle(f.ctx)
			if f.hot != nil {
				n.hot.settle(f.ctx)
			}
			f.closeNode(n)
		})
	}
}

// closeNode closes the connections to n.
func (f *Fleet) closeNode(n *node) {
	n.commands.close()
	if f.hot != nil {
		n.hot.close()
	}
}

func (f *Fleet) newNode(addr string) *node {
	n := &node{addr: addr, hash: mix(fnv1a(fnvStart, addr))}
	f.connect(&n.commands, addr)
	n.commands.start()
	if f.hot != nil {
		f.hot.link(n)
		n.hot.start()
	}
	return n
}

// connect fills in how l connects to a node.
func (f *Fleet) connect(l *link, addr string) {
	c := &f.config
	l.limit = c.Timeout
	l.dial = c.dial(addr)
	l.hello = []string{"HELLO", "3"}
	if c.Token != "" {
		l.hello = append(l.hello, "AUTH", "default", c.Token)
	}
	l.hello = append(l.hello, "SETNAME", c.Name)
}

// dial returns what connects to an address.
func (c *FleetConfig) dial(addr string) func(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{KeepAlive: -1} // there is a sign of life in every second
	if path, unix := socketPath(addr); unix {
		return func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
	}
	if c.TLS == nil {
		plain := c.dialer
		if plain == nil {
			plain = dialer.DialContext
		}
		return func(ctx context.Context) (net.Conn, error) { return plain(ctx, "tcp", addr) }
	}
	config := c.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
		if c.Discover != "" {
			config.ServerName, _, _ = net.SplitHostPort(c.Discover)
		}
	}
	over := &tls.Dialer{NetDialer: dialer, Config: config}
	return func(ctx context.Context) (net.Conn, error) { return over.DialContext(ctx, "tcp", addr) }
}
