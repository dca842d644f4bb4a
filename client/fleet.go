package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lately-go/lately/hotkey"
)

// FleetConfig configures a [Fleet]: its servers and how to reach them. Either Nodes or
// Discover is required.
type FleetConfig struct {
	// Nodes are the RESP addresses of the servers, HOST:PORT or unix:PATH. All clients must have
	// the same list, in any order, with the same spelling: it determines the node of each key.
	Nodes []string

	// Discover is a HOST:PORT whose host is a DNS name: the nodes are its addresses with
	// that port. They are looked up again every 10 s. If that fails, or finds none, the
	// nodes do not change.
	Discover string

	// Token authenticates each connection; "" sends none.
	Token string

	// TLS encrypts the connections; nil means no encryption. The default ServerName
	// is the host of the address or of Discover. Unix sockets have no TLS.
	TLS *tls.Config

	// Timeout is the longest time for a node to answer or to accept a connection; 0
	// means 1 second. A node that takes longer is down, which is detected within 1.5
	// times that.
	Timeout time.Duration

	// Name identifies this process in lists of the servers: up to 64 visible ASCII
	// characters. The default is the name of the program and its process id.
	Name string

	// Insecure allows sending the token to other machines without encryption.
	Insecure bool

	// Detector, if not nil, detects hot keys over the fleet: its counts are reported to
	// the nodes, and a key that is hot on its node becomes hot in the Detector. So a
	// [hotkey.Cache] of the Detector keeps the keys that are hot in all processes
	// together. See "Hot keys" in the package documentation. A Detector can have one
	// Fleet.
	Detector *hotkey.Detector

	// For tests; zero means TCP, 10 s, and Go's default resolver.
	dialer      func(ctx context.Context, network, addr string) (net.Conn, error)
	lookupEvery time.Duration
	lookup      func(ctx context.Context, host string) ([]string, error)
}

const (
	defaultNodeTimeout = time.Second
	leastNodeTimeout   = 10 * time.Millisecond
	lookupEvery        = 10 * time.Second
	maxName            = 64
)

var (
	// ErrUnanswered is the error of a command that was sent and not answered: the
	// connection was lost, or the context ended. The server may or may not have counted
	// it.
	ErrUnanswered = errors.New("no answer came: it may or may not have been counted")

	// ErrNoNode is the error of a command that was not sent, since no node can be
	// reached. It was not counted.
	ErrNoNode = errors.New("no node can be reached")
)

// errClosed is the error of a Fleet that was closed.
var errClosed = errors.New("the Fleet is closed")

// A Fleet spreads keys over the servers of a fleet, over RESP connections. Use it for
// decisions in the path of every request: callers share one connection to each node, and
// commands of callers that come together are sent together.
//
// Keys are sharded, not replicated: each key is counted by one node, the one with the
// largest rendezvous hash of (rule, key). If that node is down, the next node of each key
// counts it from zero, until the first is up again; keys of other nodes are not affected.
// So in one span a limit of n may allow n on each node that counted the key: 2n if one
// node fails. The same holds while clients have different lists of nodes: each of two
// nodes may allow a key n times, and a steady key is hot only if one of its parts reaches
// the threshold. Clients with different lists disagree only about keys of nodes that are
// missing from one of the lists.
//
// A command is sent once. If its connection ends before an answer, the error wraps
// [ErrUnanswered], and the command is not repeated, since it could count twice. Only a
// command that was not sent goes to another node. If a server refuses a command, the
// error is an [*Error]. All other errors mean that nothing was counted.
//
// A Fleet detects a node that is down, or only paused, within 1.5 times
// FleetConfig.Timeout, since it checks idle connections with a PING. It retries the
// node after waits with full jitter of up to 2 seconds.
//
// A Fleet has three goroutines for each node, and one more for Discover; with a Detector, six
// for each node and one more. It is safe for concurrent use. Make one with [NewFleet]; the zero Fleet is not usable.
type Fleet struct {
	config    FleetConfig
	members   members
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	running   sync.WaitGroup // what changes members
	hot       *hot           // nil without a Detector
	reporting sync.WaitGroup // hot
}

// NewFleet returns a Fleet and starts connecting in the background; the first commands
// wait for that. Call Close at the end. The error names the bad field of c and what it
// must be.
func NewFleet(c FleetConfig) (*Fleet, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Fleet{config: c}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.members.found = make(chan struct{})
	if c.Detector != nil {
		f.hot = newHot(f, c.Detector)
	}
	if c.Discover == "" {
		f.setMembers(c.Nodes)
	} else {
		f.running.Go(f.discover)
	}
	if f.hot != nil {
		f.reporting.Go(f.hot.run)
	}
	return f, nil
}

// Close closes the connections and waits for the goroutines of f. Commands in progress
// fail.
func (f *Fleet) Close() {
	f.cancel()
	f.reporting.Wait()
	f.running.Wait()
	for _, n := range f.members.now() {
		f.closeNode(n)
	}
}

func (c FleetConfig) withDefaults() (FleetConfig, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultNodeTimeout)
	c.lookupEvery = cmp.Or(c.lookupEvery, lookupEvery)
	if c.Name == "" {
		c.Name = defaultName()
	}
	if c.lookup == nil {
		c.lookup = net.DefaultResolver.LookupHost
	}
	return c, c.validate()
}

// validate returns an error that names the first value that is wrong.
func (c *FleetConfig) validate() error {
	switch {
	case (len(c.Nodes) == 0) == (c.Discover == ""):
		return errors.New("FleetConfig: Nodes and Discover: must be one of them")
	case c.Timeout < leastNodeTimeout:
		return fmt.Errorf("FleetConfig.Timeout: %v: must be 0 (%v), or %v or more", c.Timeout, defaultNodeTimeout, leastNodeTimeout)
	case strings.ContainsFunc(c.Token, notVisible):
		return errors.New("FleetConfig.Token: a blank, or a character that is not ASCII: must be a token from the server's token file")
	case len(c.Name) > maxName || strings.ContainsFunc(c.Name, notVisible):
		return fmt.Errorf("FleetConfig.Name: %q: must be up to %d visible ASCII characters", c.Name, maxName)
	}
	return c.validateNodes()
}

func (c *FleetConfig) validateNodes() error {
	addrs := c.Nodes
	if c.Discover != "" {
		addrs = []string{c.Discover}
	}
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			return fmt.Errorf("FleetConfig.Nodes: %q: must be there once", addr)
		}
		if path, unix := socketPath(addr); unix && path != "" && c.Discover == "" {
			continue
		}
		host, port, err := net.SplitHostPort(addr)
		number, bad := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || bad != nil || number == 0 || host == "":
			return fmt.Errorf("FleetConfig: address %q: must be HOST:PORT, or in Nodes unix:PATH", addr)
		case c.Token != "" && c.TLS == nil && !c.Insecure && !isLocal(host):
			return fmt.Errorf("FleetConfig.Token: it would be sent to %s without encryption: must be an address of this machine, or with TLS or Insecure", addr)
		}
	}
	return nil
}

func notVisible(r rune) bool { return r <= ' ' || r > '~' }

// defaultName returns the name of the program and its process id, cut to what servers take.
func defaultName() string {
	id := "-" + strconv.Itoa(os.Getpid())
	program := strings.Map(func(r rune) rune {
		if notVisible(r) {
			return '_'
		}
		return r
	}, filepath.Base(os.Args[0]))
	return program[:min(len(program), maxName-len(id))] + id
}

// ask sends a command to the node of its key, or if that is down to the next, and waits for
// the answer.
func (f *Fleet) ask(ctx context.Context, parse parser, rule string, key uint64, args ...string) (answer, error) {
	nodes, err := f.nodes(ctx)
	if err != nil {
		return answer{}, err
	}
	for below := uint64(math.MaxUint64); ; {
		n, s := choose(nodes, key, below)
		if n == nil {
			return answer{}, fmt.Errorf("%w: %w", ErrNoNode, err)
		}
		var p *pipe
		if p, err = n.commands.get(ctx); err == nil {
			var a answer
			if a, err = p.ask(ctx, parse, rule, args...); !errors.Is(err, errNotSent) {
				return a, n.named(err)
			}
		}
		if ctx.Err() != nil || err == errFull {
			return answer{}, n.named(err)
		}
		if err = n.named(err); n.commands.down() {
			below = s
		}
	}
}
