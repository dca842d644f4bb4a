package client

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// A pipeNetwork has servers by their addresses. Its connections are pipes, which work in a
// bubble of testing/synctest, where minutes take no time.
type pipeNetwork map[string]*pipeListener

type pipeListener struct {
	addr  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.addr} }

func (p pipeNetwork) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	l := p[addr]
	local, remote := net.Pipe()
	select {
	case l.conns <- remote:
		return local, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("%s: no such server", addr)
}

// The rule of these tests: 20 processes use each key 1.2 times as often as the threshold.
const (
	steadyRules     = "version: 1\nhot:\n  - {name: product, key: path, threshold: 200 per 2s, hold: 10s, cache: {ttl: 20s, max_age: 40s}}\n"
	steadyProcesses = 20
	steadyTTL       = 20 * time.Second
	steadyUses      = steadyProcesses * 2 * time.Second / 240 // the time between two of a process
	steadyLoad      = 20 * time.Millisecond
)

var steadyKeys = []string{"/a", "/b", "/c"}

// start starts a server until ctx ends.
func (p pipeNetwork) start(ctx context.Context, t *testing.T, addr string, running *sync.WaitGroup) {
	file := parsed(t, steadyRules)
	e := must.Get(engine.New(engine.Config{Rules: file}))(t)
	s := respapi.New(listen.Config{Engine: e})
	l := &pipeListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	p[addr] = l
	running.Go(func() {
		defer e.Close()
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// A steadyProcess uses all keys all the time.
type steadyProcess struct {
	mu       sync.Mutex
	hot      map[string]bool
	demoted  int
	loads    map[string][]time.Time // while the key was hot
	wasted   int                    // loads of keys that were not
	reported HotStats
}

// run uses the keys until ctx ends.
func (x *steadyProcess) run(ctx context.Context, t *testing.T, servers pipeNetwork) {
	file, err := rules.Parse("rules.yaml", []byte(steadyRules))
	if err != nil {
		t.Error(err)
		return
	}
	d, err := hotkey.NewDetector(file.Hot, hotkey.DetectorConfig{})
	if err != nil {
		t.Error(err)
		return
	}
	f, err := NewFleet(FleetConfig{Nodes: slices.Sorted(maps.Keys(servers)), Detector: d, dialer: servers.dial})
	if err != nil {
		t.Error(err)
		return
	}
	cache, err := hotkey.NewCache(d, hotkey.CacheConfig[int]{Rule: "product", Load: func(_ context.Context, key string) (int, error) {
		_, hot := under(d, "product").Hot(key)
		x.see(key, hot)
		x.mu.Lock()
		if hot {
			x.loads[key] = append(x.loads[key], time.Now())
		} else {
			x.wasted++
		}
		x.mu.Unlock()
		time.Sleep(steadyLoad)
		return 1, nil
	}})
	if err != nil {
		t.Error(err)
		return
	}
	var using sync.WaitGroup
	for _, key := range steadyKeys {
		using.Go(func() {
			time.Sleep(rand.N(steadyUses))
			for ctx.Err() == nil {
				if _, err := cache.Get(context.Background(), key); err != nil {
					t.Error(err)
				}
				_, hot := under(d, "product").Hot(key)
				x.see(key, hot)
				time.Sleep(steadyUses)
			}
		})
	}
	using.Wait()
	f.Close()
	x.reported = f.HotStats()
}

// see notes whether a key is hot.
func (x *steadyProcess) see(key string, hot bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.hot[key] && !hot {
		x.demoted++
	}
	x.hot[key] = hot
}

// startSteady starts all processes at once. end ends them at once.
func startSteady(t *testing.T, servers pipeNetwork) (all []*steadyProcess, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range steadyProcesses {
		x := &steadyProcess{hot: map[string]bool{}, loads: map[string][]time.Time{}}
		all = append(all, x)
		running.Go(func() { x.run(ctx, t, servers) })
	}
	return all, func() {
		cancel()
		running.Wait()
	}
}

// inspect returns an error about the loads of x within d, or nil.
func (x *steadyProcess) inspect(t *testing.T, d time.Duration) {
	t.Helper()
	if x.demoted > 0 {
		t.Errorf("a key was demoted %d times", x.demoted)
	}
	for _, key := range steadyKeys {
		loads := x.loads[key]
		for i := 1; i < len(loads); i++ {
			if between := loads[i].Sub(loads[i-1]); between < steadyTTL*4/5 || between > steadyTTL {
				t.Errorf("load %d of %s comes %v after the previous one, want one for each renewal", i, key, between)
			}
		}
		if most := int(d/(steadyTTL*4/5)) + 1; len(loads) == 0 || len(loads) > most {
			t.Errorf("%d loads of %s in %v, want 1 to %d", len(loads), key, d, most)
		}
	}
	if s := x.reported; s.Added != s.Sent || s.Added == 0 {
		t.Errorf("%+v: not all was sent", s)
	}
}

// Keys steadily at 1.2 times the threshold, over 20 processes and 3 servers, are hot without
// an interruption, and each process loads them once for each renewal. When all processes are
// restarted at once, each loads each key once, and the renewals that follow are spread. The
// long form takes 10 minutes of a bubble's time, the short one a minute.
func TestSteadyKeys(t *testing.T) {
	minutes := time.Minute
	if os.Getenv("LATELY_LONG") != "" {
		minutes = 10 * time.Minute
	}
	requests = newRequests() // a bubble does not share channels
	defer func() { requests = newRequests() }()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		servers := pipeNetwork{}
		for _, addr := range []string{"10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380"} {
			servers.start(ctx, t, addr, &running)
		}
		defer running.Wait()
		defer cancel()
		all, end := startSteady(t, servers)
		time.Sleep(minutes)
		end()
		loads, wasted := 0, 0
		for _, x := range all {
			x.inspect(t, minutes)
			wasted += x.wasted
			for _, l := range x.loads {
				loads += len(l)
			}
		}
		t.Logf("%v: %d loads of hot keys by %d processes; %d before the keys were hot", minutes, loads, steadyProcesses, wasted)
		if most := steadyProcesses * len(steadyKeys) * 20; wasted > most {
			t.Errorf("%d loads before the keys were hot, want at most %d", wasted, most)
		}
		restarted(t, servers)
	})
}

// restarted starts all processes at once, on servers that have the keys already.
func restarted(t *testing.T, servers pipeNetwork) {
	t.Helper()
	again, end := startSteady(t, servers)
	began := time.Now()
	time.Sleep(steadyTTL * 4 / 5)
	for i, x := range again {
		x.mu.Lock()
		for _, key := range steadyKeys {
			if n := len(x.loads[key]); n != 1 || x.wasted != 0 {
				t.Errorf("process %d, restarted, has loaded %s %d times, and %d times before it was hot: want once", i, key, n, x.wasted)
			}
		}
		x.mu.Unlock()
	}
	time.Sleep(steadyTTL)
	end()
	for _, key := range steadyKeys {
		var second []time.Duration
		for _, x := range again {
			if l := x.loads[key]; len(l) > 1 {
				second = append(second, l[1].Sub(began))
			}
		}
		slices.Sort(second)
		if len(second) != steadyProcesses {
			t.Fatalf("%d processes have renewed %s, want all", len(second), key)
		}
		if spread := second[len(second)-1] - second[0]; spread < steadyTTL/20 {
			t.Errorf("all processes renewed %s within %v: not spread", key, spread)
		}
	}
	for _, x := range again {
		x.inspect(t, steadyTTL*9/5)
	}
}
