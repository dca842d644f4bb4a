package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
	"github.com/lately-go/lately/rules"
)

// processRules make a key hot that 20 processes use ten times a second each, which is twice
// the threshold.
const (
	processRules = "version: 1\nhot:\n  - {name: product, key: path, threshold: 200 per 2s, hold: 60s, cache: {ttl: 30s}}\n"
	processSpan  = 2 * time.Second
	steadyKey    = "/steady"
)

// beProcess is the main function of the processes that TestFleetOfProcesses starts. They end
// when their input does.
func beProcess(role string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	file, err := rules.Parse("rules.yaml", []byte(processRules))
	if err != nil {
		return err
	}
	if role == "server" {
		return beServer(ctx, file)
	}
	return beClient(ctx, file, strings.Split(role, ","))
}

// beServer prints its address, and in the end how many events it has counted.
func beServer(ctx context.Context, file *rules.File) error {
	e, err := engine.New(engine.Config{Rules: file})
	if err != nil {
		return err
	}
	defer e.Close()
	s := respapi.New(listen.Config{Engine: e})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	if err := s.Serve(ctx, l); err != nil {
		return err
	}
	stats, err := e.Hot().Stats("product")
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(stats.Rules[0].Events)
}

// beClient uses the steady key and many others. It prints when the steady key becomes hot or
// cold for it, and a node up or down, and at the end the outcomes of the reports.
func beClient(ctx context.Context, file *rules.File, nodes []string) error {
	d, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
	if err != nil {
		return err
	}
	f, err := NewFleet(FleetConfig{Nodes: nodes, Detector: d})
	if err != nil {
		return err
	}
	was := map[string]bool{}
	tell := func(what string, is bool) {
		if was[what] != is {
			was[what] = is
			fmt.Println(what, is, time.Now().UnixNano())
		}
	}
	for i := 0; ctx.Err() == nil; i++ {
		if i%10 == 0 {
			under(d, "product").Add(steadyKey)
		}
		for j := range 10 {
			under(d, "product").Add(fmt.Sprint("/p/", (i*10+j)%1000))
		}
		_, hot := under(d, "product").Hot(steadyKey)
		tell("hot", hot)
		for _, n := range f.Nodes() {
			tell(n.Addr, n.Up)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	return json.NewEncoder(os.Stdout).Encode(f.HotStats())
}

// A child is a process that the test has started.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer

	mu    sync.Mutex
	lines []string
	ended chan struct{}
}

func startChild(t *testing.T, role string) *child {
	t.Helper()
	self := must.Get(os.Executable())(t)
	c := &child{cmd: exec.Command(self), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "LATELY_FLEET_PROCESS="+role)
	c.cmd.Stderr = os.Stderr
	c.stdin = must.Get(c.cmd.StdinPipe())(t)
	out := must.Get(c.cmd.StdoutPipe())(t)
	must.Do(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.mu.Lock()
			c.lines = append(c.lines, s.Text())
			c.mu.Unlock()
		}
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
	})
	return c
}

// end ends the process and reads its last output.
func (c *child) end(t *testing.T, into any) {
	t.Helper()
	c.stdin.Close()
	<-c.ended
	must.Do(t, json.Unmarshal([]byte(c.lines[len(c.lines)-1]), into))
}

// at returns when the process printed that something is so, the last time.
func (c *child) at(what string, is bool) (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		var name string
		var value bool
		var nanos int64
		if n, _ := fmt.Sscan(line, &name, &value, &nanos); n == 3 && name == what && value == is {
			at, ok = time.Unix(0, nanos), true
		}
	}
	return at, ok
}

// listsHot reports whether a server has the steady key hot.
func listsHot(t *testing.T, addr string) bool {
	t.Helper()
	c := must.Get(net.Dial("tcp", addr))(t)
	defer c.Close()
	must.Get(c.Write(resp.AppendCommand(nil, "HOT.LIST", "product")))(t)
	v := must.Get(resptest.NewReader(c).Next())(t)
	return slices.ContainsFunc(v.Elems, func(e resptest.Value) bool { return e.Elems[1].Text == steadyKey })
}

// Three servers and twenty clients, each a process. One server is killed under load: that is noticed within 2 s, and a key
// at twice the threshold is hot on another node within its span and 2 s, and hot in all processes all the time.
// TestHotKeysOfAFleet is the short form.
//
//	LATELY_LONG=1 go test ./client -run TestFleetOfProcesses -v
func TestFleetOfProcesses(t *testing.T) {
	if os.Getenv("LATELY_LONG") == "" {
		t.Skip("SKIP: LATELY_LONG is not set")
	}
	servers := map[string]*child{}
	for range 3 {
		s := startChild(t, "server")
		until(t, "the server has an address", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.lines) > 0 })
		servers[s.lines[0]] = s
	}
	addrs := slices.Sorted(maps.Keys(servers))
	var clients []*child
	for range 20 {
		clients = append(clients, startChild(t, strings.Join(addrs, ",")))
	}
	everyone := func(what string, is bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(clients, func(c *child) bool { _, ok := c.at(what, is); return !ok })
		}
	}
	until(t, "the steady key is hot in all processes", everyone("hot", true))
	time.Sleep(processSpan)
	home, _ := choose(nodesOf(addrs...), hashOf("product", steadyKey), 1<<64-1)
	if !listsHot(t, home.addr) {
		t.Error("the steady key is not hot on its node")
	}
	killed := time.Now()
	must.Do(t, servers[home.addr].cmd.Process.Kill())
	others := slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return a == home.addr })
	until(t, "the steady key is hot on another node", func() bool { return listsHot(t, others[0]) || listsHot(t, others[1]) })
	again := time.Since(killed)
	until(t, "all clients have noticed", everyone(home.addr, false))
	var slowest time.Duration
	for i, c := range clients {
		at, _ := c.at(home.addr, false)
		slowest = max(slowest, at.Sub(killed))
		if at, cold := c.at("hot", false); cold {
			t.Errorf("the steady key was cold for client %d at %v", i, at.Sub(killed))
		}
		for _, a := range others {
			if at, down := c.at(a, false); down {
				t.Errorf("client %d lost a node that was up, at %v", i, at.Sub(killed))
			}
		}
	}
	t.Logf("noticed within %v, hot on another node after %v", slowest, again)
	if slowest > 2*time.Second || again > processSpan+2*time.Second {
		t.Error("that took too long: want 2 s, and the span and 2 s")
	}
	var total HotStats
	for i, c := range clients {
		var s HotStats
		c.end(t, &s)
		if s.Added != s.Sent+s.Dropped+s.Unanswered+s.Pending {
			t.Errorf("client %d: %+v do not add up", i, s)
		}
		total.Added, total.Sent, total.Dropped, total.Unanswered, total.Pending = total.Added+s.Added, total.Sent+s.Sent, total.Dropped+s.Dropped, total.Unanswered+s.Unanswered, total.Pending+s.Pending
	}
	var left uint64
	for _, a := range others {
		var n uint64
		servers[a].end(t, &n)
		left += n
	}
	t.Logf("%+v; the two servers that are left have %d", total, left)
	if left > total.Sent+total.Unanswered || left == 0 {
		t.Errorf("the servers that are left have %d events, but %d were sent", left, total.Sent)
	}
}
