package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// hotEvents returns how many events of reports the servers have counted under a rule.
func hotEvents(t testing.TB, rule string, servers ...*testServer) (sum uint64) {
	t.Helper()
	for _, s := range servers {
		stats := must.Get(s.Hot().Stats(rule))(t)
		sum += stats.Rules[0].Events
	}
	return sum
}

// knowsHot reports whether a server itself has found a key hot.
func (s *testServer) knowsHot(key string) bool {
	hot, _ := s.Hot().List("product")
	for _, k := range hot {
		if k.Values()[0] == key {
			return true
		}
	}
	return false
}

// A process is a member of a fleet.
type process struct {
	f     *Fleet
	d     *hotkey.Detector
	cache *hotkey.Cache[int64]
	loads atomic.Int64
}

// startProcesses starts processes whose caches count the loads.
func startProcesses(t testing.TB, n int, c FleetConfig) (all []*process) {
	t.Helper()
	for range n {
		p := &process{}
		p.f, p.d = hotFleet(t, c)
		p.cache = must.Get(hotkey.NewCache(p.d, hotkey.CacheConfig[int64]{
			Rule: "product", Load: func(context.Context, string) (int64, error) { return p.loads.Add(1), nil },
		}))(t)
		all = append(all, p)
	}
	return all
}

// share is the number of uses that each of five processes counts for a key, twice, with a threshold of 100: too few to find
// it hot alone.
const share = 30

// heat has all processes use a key.
func heat(t testing.TB, all []*process, key string) {
	t.Helper()
	for _, p := range all {
		if _, _, err := under(p.d, "product").AddAt(p.d.Now(), key, share); err != nil {
			t.Fatal(err)
		}
	}
}

func all(processes []*process, holds func(p *process) bool) bool {
	for _, p := range processes {
		if !holds(p) {
			return false
		}
	}
	return true
}

// From end to end: a key that is hot over all processes is hot in each. It stays hot when its node is killed, and another
// node finds it hot. A change of its value reaches all.
func TestHotKeysOfAFleet(t *testing.T) {
	servers, addrs := startServers(t, 3)
	processes := startProcesses(t, 5, FleetConfig{Nodes: addrs})
	key := keysOf("product", addrs, 1, 1)[0]
	heat(t, processes, key)
	until(t, "the key is hot in all processes", func() bool {
		return all(processes, func(p *process) bool { _, ok, hot := p.cache.Peek(key); return hot && !ok })
	})
	for i, p := range processes {
		if k, _ := under(p.d, "product").Hot(key); k.Lo >= 100 {
			t.Errorf("process %d has counted %d events: it needed nobody to find the key hot", i, k.Lo)
		}
		for range 10 {
			if v, err := p.cache.Get(t.Context(), key); v != 1 || err != nil {
				t.Errorf("process %d: Get is %d, %v, want the first load", i, v, err)
			}
		}
	}
	if !servers[1].knowsHot(key) || servers[0].knowsHot(key) || servers[2].knowsHot(key) {
		t.Error("the key is hot on another node than its own")
	}
	if err := processes[0].f.Changed(t.Context(), "product", key); err != nil {
		t.Error(err)
	}
	until(t, "no process has the value before", func() bool {
		return all(processes, func(p *process) bool { _, ok, hot := p.cache.Peek(key); return hot && !ok })
	})
	if v, err := processes[4].cache.Get(t.Context(), key); v != 2 || err != nil {
		t.Errorf("Get is %d, %v, want the second load", v, err)
	}

	hits := func() (sum uint64) {
		for _, s := range servers {
			stats := must.Get(s.Hot().Stats("product"))(t)
			sum += stats.Rules[0].Caches.Hits
		}
		return sum
	}
	until(t, "the servers are told of the hits", func() bool { return hits() == 5*9 }) // reports on their way to a server that is killed may be lost
	servers[1].kill()
	until(t, "all processes have noticed", func() bool {
		return all(processes, func(p *process) bool { return !p.f.hotUp(addrs[1]) })
	})
	heat(t, processes, key)
	until(t, "the key is hot on another node", func() bool { return servers[0].knowsHot(key) || servers[2].knowsHot(key) })
	if !all(processes, func(p *process) bool { return isHot(p.d, key) }) {
		t.Error("the key was not hot all the time")
	}
	servers[1].revive()
	var sent, unanswered uint64
	for _, p := range processes {
		s := settled(t, p.f)
		if s.Added != s.Sent+s.Dropped+s.Unanswered || s.Err != nil {
			t.Errorf("%+v do not add up", s)
		}
		sent, unanswered = sent+s.Sent, unanswered+s.Unanswered
	}
	if n := hotEvents(t, "product", servers...); n < sent || n > sent+unanswered {
		t.Errorf("the servers have %d events, want %d to %d", n, sent, sent+unanswered)
	}
	for _, p := range processes {
		p.f.Close()
	}
	if n := hits(); n != 5*9 {
		t.Errorf("the servers received %d hits, want %d", n, 5*9)
	}
}

// Servers are killed and paused in turns while processes report. Answered reports were counted once, unanswered ones at
// most once.
func TestHotReportsReconcileWithServers(t *testing.T) {
	servers, addrs := startServers(t, 3)
	processes := startProcesses(t, 3, FleetConfig{Nodes: addrs, Timeout: 500 * time.Millisecond})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				p.cache.IsHot(fmt.Sprint("/p/", (n*7+i)%300))
				if n%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	more := func(s *testServer) {
		t.Helper()
		from := hotEvents(t, "product", s)
		until(t, "more events", func() bool { return hotEvents(t, "product", s) > from+100 })
	}
	for i, s := range servers {
		more(s)
		if i == 1 {
			s.kill()
		} else {
			s.freeze()
		}
		until(t, "all processes have noticed", func() bool {
			return all(processes, func(p *process) bool { return !p.f.hotUp(s.addr) })
		})
		more(servers[(i+1)%3])
		if i == 1 {
			s.revive()
		} else {
			s.thaw()
		}
		until(t, "all processes are connected again", func() bool {
			return all(processes, func(p *process) bool { return p.f.hotUp(s.addr) })
		})
	}
	stop.Store(true)
	wg.Wait()
	var total HotStats
	for _, p := range processes {
		s := settled(t, p.f)
		total.Added, total.Sent, total.Dropped, total.Unanswered = total.Added+s.Added, total.Sent+s.Sent, total.Dropped+s.Dropped, total.Unanswered+s.Unanswered
	}
	if total.Added != total.Sent+total.Dropped+total.Unanswered {
		t.Errorf("%+v do not add up", total)
	}
	// A paused server counts what it had received when it goes on.
	n := hotEvents(t, "product", servers...)
	t.Logf("%+v; the servers have %d", total, n)
	if n < total.Sent || n > total.Sent+total.Unanswered {
		t.Errorf("the servers have %d events, want %d to %d", n, total.Sent, total.Sent+total.Unanswered)
	}
}

// With different lists of nodes a key is counted on two: no process finds it hot before one
// part has reached the threshold, and then all do.
func TestHotKeysWithDifferentLists(t *testing.T) {
	_, addrs := startServers(t, 2)
	one, two := startProcesses(t, 1, FleetConfig{Nodes: addrs[:1]})[0], startProcesses(t, 1, FleetConfig{Nodes: addrs})[0]
	key := keysOf("product", addrs, 1, 1)[0]
	count := func(p *process, n uint64) {
		t.Helper()
		p.f.hot.tally.add(0, key, n, p.d.Now().UnixNano(), false)
		settled(t, p.f)
	}
	count(one, 99)
	count(two, 99)
	if isHot(one.d, key) || isHot(two.d, key) {
		t.Error("a key is hot that has 99 events on each of two nodes")
	}
	count(one, 101)
	until(t, "the key is hot for both", func() bool { return isHot(one.d, key) && isHot(two.d, key) })
}

// A rule that the servers do not have: the reports are dropped, and the error gives the reason.
func TestHotRuleOfNoServer(t *testing.T) {
	s := startServer(t, listen.Config{})
	d := mustDetector(t)
	r := d.Rules()[0]
	r.Name = "produkt"
	d = must.Get(hotkey.New(r))(t)
	f := mustFleet(t, FleetConfig{Nodes: []string{s.addr}, Detector: d})
	until(t, "the node is up", func() bool { return f.hotUp(s.addr) })
	if _, _, err := under(d, "produkt").AddAt(d.Now(), "/a", math.MaxInt32); err != nil {
		t.Fatal(err)
	}
	stats := settled(t, f)
	if refusal, ok := errors.AsType[*Error](stats.Err); !ok || refusal.Code != "NORULE" || stats.Dropped != math.MaxInt32 {
		t.Errorf("%+v; want all dropped with NORULE", stats)
	}
}
