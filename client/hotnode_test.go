package client

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// A scriptedNode is a node that sends the updates of a test, also ones that no server
// sends, or only by accident.
type scriptedNode struct {
	*proxy
	t testing.TB

	mu       sync.Mutex
	counts   map[string]uint64 // by rule and values, joined by blanks
	records  int
	oldest   int64 // age
	caches   []string
	changed  []string
	watchers map[*scriptedConn]struct{}
	watched  int    // how often
	first    string // JSON that a watcher gets first
	refuse   string // answer to reports, if not ""
}

type scriptedConn struct {
	mu sync.Mutex
	w  *resp.Writer
}

func startScripted(t testing.TB) *scriptedNode {
	t.Helper()
	n := &scriptedNode{t: t, counts: make(map[string]uint64), watchers: make(map[*scriptedConn]struct{})}
	n.first = `{"instance":"i","from":0,"version":0,"reset":true,"more":false,"hot":[],"cold":[],"changed":[]}`
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { n.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	n.proxy = newProxy(t, freeport.Addr(t), l.Addr().String())
	return n
}

// newScripted starts a node, and returns it with a fleet of only this node that has connected.
func newScripted(t testing.TB) (*scriptedNode, *Fleet, *hotkey.Detector) {
	t.Helper()
	n := startScripted(t)
	f, d := hotFleet(t, FleetConfig{Nodes: []string{n.addr}})
	return n, f, d
}

// startScripts starts several nodes, and returns their addresses, too.
func startScripts(t testing.TB, count int) (nodes []*scriptedNode, addrs []string) {
	t.Helper()
	for range count {
		nodes = append(nodes, startScripted(t))
		addrs = append(addrs, nodes[len(nodes)-1].addr)
	}
	return nodes, addrs
}

// change changes what n answers.
func (n *scriptedNode) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *scriptedNode) serve(raw net.Conn) {
	defer raw.Close()
	c := &scriptedConn{w: resp.NewWriter(raw)}
	c.w.SetVersion(3)
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watchers, c)
	}()
	r := resp.NewReader(raw, resp.Limits{})
	for {
		args, err := r.Next()
		if err != nil {
			return
		}
		n.mu.Lock()
		c.mu.Lock()
		n.do(c, args)
		err = c.w.Flush()
		c.mu.Unlock()
		n.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// do answers a command.
func (n *scriptedNode) do(c *scriptedConn, args [][]byte) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	switch words[0] {
	case "HELLO":
		c.w.Map(1)
		c.w.BulkString("server")
		c.w.BulkString("lately")
	case "PING":
		c.w.Simple("PONG")
	case "HOT.WATCH":
		n.watched++
		n.watchers[c] = struct{}{}
		c.w.OK()
		c.push(n.first)
	case "HOT.CACHE":
		n.caches = append(n.caches, strings.Join(words[1:], " "))
		c.w.OK()
	case "HOT.CHANGED":
		n.changed = append(n.changed, strings.Join(words[1:], " "))
		c.w.Int(1)
	case "HOT.REPORT":
		if n.refuse != "" {
			c.w.Error("NORULE", n.refuse)
			return
		}
		fields := map[string]int{"product": 1, "pair-hot": 2}[words[1]]
		records := 0
		for rest := words[2:]; len(rest) > 0; rest = rest[fields+2:] {
			count, err := strconv.ParseUint(rest[fields], 10, 64)
			age, bad := strconv.ParseInt(rest[fields+1], 10, 64)
			if err != nil || bad != nil || age < 0 {
				n.t.Errorf("HOT.REPORT has the count %s and the age %s", rest[fields], rest[fields+1])
			}
			n.counts[words[1]+" "+strings.Join(rest[:fields], " ")] += count
			n.oldest = max(n.oldest, age)
			records++
		}
		if len(words) > 1024 {
			n.t.Errorf("HOT.REPORT has %d arguments", len(words))
		}
		n.records += records
		c.w.Int(int64(records))
	default:
		c.w.Error("ERR", "unknown command "+words[0])
	}
}

func (c *scriptedConn) push(text string) {
	c.w.Push(2)
	c.w.BulkString("hot")
	c.w.BulkString(text)
}

// tell sends an update to all watchers.
func (n *scriptedNode) tell(u api.HotUpdate) {
	n.t.Helper()
	text := must.Get(json.Marshal(u))(n.t)
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.watchers {
		c.mu.Lock()
		c.push(string(text))
		_ = c.w.Flush()
		c.mu.Unlock()
	}
}

// locked returns what a function returns under the lock of n.
func locked[T any](n *scriptedNode, of func() T) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return of()
}

// sum returns how many events were reported to n.
func (n *scriptedNode) sum() uint64 {
	return locked(n, func() (sum uint64) {
		for _, c := range n.counts {
			sum += c
		}
		return sum
	})
}
