package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
)

// mustDetector returns a Detector of the hot rules of the servers.
func mustDetector(t testing.TB) *hotkey.Detector {
	t.Helper()
	d := must.Get(hotkey.NewDetector(parsed(t, fleetRules).Hot, hotkey.DetectorConfig{}))(t)
	return d
}

func (f *Fleet) hotUp(addr string) bool {
	for _, n := range *f.members.list.Load() {
		if n.addr == addr {
			return n.hot.live.Load() != nil
		}
	}
	return false
}

// hotFleet returns a fleet of a new Detector that has connected to all nodes.
func hotFleet(t testing.TB, c FleetConfig) (*Fleet, *hotkey.Detector) {
	t.Helper()
	c.Detector = mustDetector(t)
	f := mustFleet(t, c)
	for _, a := range c.Nodes {
		until(t, "all nodes are up", func() bool { return f.hotUp(a) })
	}
	return f, c.Detector
}

func settled(t testing.TB, f *Fleet) HotStats {
	t.Helper()
	until(t, "all reports are answered", func() bool { return f.HotStats().Pending == 0 })
	return f.HotStats()
}

// Counts of the Detector are reported once to the node of the key, with all its values.
func TestHotReports(t *testing.T) {
	nodes, addrs := startScripts(t, 2)
	f, d := hotFleet(t, FleetConfig{Nodes: addrs})
	want := make(map[string]uint64)
	for i := range 2000 {
		key := fmt.Sprint("/p/", i%300)
		if _, _, err := under(d, "product").Add(key); err != nil {
			t.Fatal(err)
		}
		want["product "+key]++
	}
	pair := must.Get(d.Rules()[1].Key.Join(nil, "192.0.2.1", "ada"))(t)
	for range 7 {
		under(d, "pair-hot").Add(string(pair))
	}
	want["pair-hot 192.0.2.1 ada"] = 7
	under(d, "product").AddAt(d.Now(), "/many", math.MaxInt32*3)
	want["product /many"] = math.MaxInt32 * 3
	under(d, "product").Add(strings.Repeat("x", maxReportValue+1))
	under(d, "pair-hot").Add("no pair")
	s := settled(t, f)
	sum := uint64(0)
	for _, n := range want {
		sum += n
	}
	if s.Added != sum+2 || s.Sent != sum || s.Dropped != 2 || s.Unanswered != 0 || s.Err != nil {
		t.Errorf("%+v; want %d added, 2 dropped", s, sum+2)
	}
	got := make(map[string]uint64)
	for i, n := range nodes {
		for k, c := range n.counts {
			if got[k] > 0 {
				t.Errorf("%s was reported to both nodes", k)
			}
			got[k] = c
			rule, key, _ := strings.Cut(k, " ")
			if best, _ := choose(*f.members.list.Load(), hashOf(rule, strings.ReplaceAll(key, " ", "\t")), math.MaxUint64); best.addr != addrs[i] {
				t.Errorf("%s was reported to another node than that of its decisions", k)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the nodes have\n%v\nwant\n%v", got, want)
	}
}

// A node that refuses reports, and one whose answers are lost: all is counted.
func TestHotReportsThatAreLost(t *testing.T) {
	n, f, d := newScripted(t)
	n.change(func() { n.refuse = "no hot rule" })
	under(d, "product").AddAt(d.Now(), "/a", 5)
	until(t, "the report is refused", func() bool { return f.HotStats().Dropped == 5 })
	if s := f.HotStats(); s.Err == nil || s.Err.Error() != "NORULE no hot rule" {
		t.Errorf("the error is %v", s.Err)
	}
	n.change(func() { n.refuse = "" })
	n.freeze()
	p := (*f.members.list.Load())[0].hot.live.Load()
	before, _ := p.counts()
	under(d, "product").AddAt(d.Now(), "/a", 7)
	until(t, "the report is written", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.taken > before
	})
	n.kill()
	until(t, "the report is lost", func() bool { return f.HotStats().Unanswered == 7 })
	under(d, "product").AddAt(d.Now(), "/a", 11) // kept until the node is back
	if s := f.HotStats(); s.Pending != 11 || s.Added != 23 {
		t.Errorf("%+v, want 11 pending of 23", s)
	}
	n.revive()
	if s := settled(t, f); s.Added != 23 || s.Sent != 11 || s.Dropped != 5 || s.Unanswered != 7 {
		t.Errorf("%+v", s)
	}
	if sum := n.sum(); sum < 11 || sum > 18 {
		t.Errorf("the node has %d events, want 11 to 18", sum)
	}
}

// A node is killed again and again while many goroutines count. Nothing is lost silently,
// and nothing counted twice.
func TestHotReportsReconcile(t *testing.T) {
	nodes, addrs := startScripts(t, 3)
	f, d := hotFleet(t, FleetConfig{Nodes: addrs})
	var stop atomic.Bool
	var added atomic.Uint64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				under(d, "product").Add(fmt.Sprint("/p/", (i+g*100)%500))
				added.Add(1)
				if i%20 == 0 {
					time.Sleep(time.Millisecond)
				}
				if s := f.HotStats(); i%50 == 0 && s.Added != s.Sent+s.Pending+s.Dropped+s.Unanswered {
					t.Errorf("%+v do not add up", s)
					return
				}
			}
		})
	}
	for range 3 {
		more := nodes[1].sum() + 100
		until(t, "more reports", func() bool { return nodes[1].sum() > more })
		nodes[1].kill()
		until(t, "the node is down", func() bool { return !f.hotUp(addrs[1]) })
		others := nodes[0].sum() + nodes[2].sum()
		until(t, "more reports to the others", func() bool { return nodes[0].sum()+nodes[2].sum() > others+100 })
		nodes[1].revive()
		until(t, "the node is up", func() bool { return f.hotUp(addrs[1]) })
	}
	stop.Store(true)
	wg.Wait()
	s := settled(t, f)
	counted := nodes[0].sum() + nodes[1].sum() + nodes[2].sum()
	t.Logf("%+v; the nodes have %d", s, counted)
	if s.Added != added.Load() || s.Added != s.Sent+s.Dropped+s.Unanswered {
		t.Errorf("%+v do not add up to %d", s, added.Load())
	}
	if counted < s.Sent || counted > s.Sent+s.Unanswered {
		t.Errorf("the nodes have %d events, want %d to %d", counted, s.Sent, s.Sent+s.Unanswered)
	}
}

// Close sends the pending counts.
func TestHotCloseSendsTheRest(t *testing.T) {
	n, f, d := newScripted(t)
	under(d, "product").AddAt(d.Now(), "/a", 3)
	f.Close()
	under(d, "product").Add("/a") // is the Detector's own now
	if s := f.HotStats(); s.Added != 3 || s.Sent != 3 || n.sum() != 3 {
		t.Errorf("%+v, and the node has %d", s, n.sum())
	}
}

func update(from, version uint64, hot ...string) api.HotUpdate {
	u := api.HotUpdate{Instance: "i", From: from, Version: version, Hot: []api.HotKey{}, Cold: []api.RuleKey{}, Changed: []api.RuleKey{}}
	for _, k := range hot {
		u.Hot = append(u.Hot, api.HotKey{Rule: "product", Key: api.KeyOf(k), TTL: 60_000})
	}
	return u
}

func ruleKeys(keys ...string) (all []api.RuleKey) {
	for _, k := range keys {
		all = append(all, api.RuleKey{Rule: "product", Key: api.KeyOf(k)})
	}
	return all
}

func isHot(d *hotkey.Detector, key string) bool {
	_, hot := under(d, "product").Hot(key)
	return hot
}

// A node's updates make keys hot and cold. After a gap the client requests the list again, and drops keys that are not hot
// any more; after a restart of the node it keeps them until their time ends.
func TestHotUpdates(t *testing.T) {
	n, _, d := newScripted(t)
	n.tell(update(0, 2, "/a", "/b", "a\xff"))
	until(t, "3 keys are hot", func() bool { return isHot(d, "/a") && isHot(d, "/b") && isHot(d, "a\xff") })
	cold := update(2, 3, "/c")
	cold.Cold = ruleKeys("/b")
	cold.More = true
	n.tell(cold)
	n.tell(update(2, 3, "/d"))
	until(t, "/b is cold", func() bool { return isHot(d, "/d") && isHot(d, "/c") && !isHot(d, "/b") && isHot(d, "/a") })
	unknown := update(3, 4, "/e")
	unknown.Hot = append(unknown.Hot, api.HotKey{Rule: "nosuch", Key: api.KeyOf("x")}, api.HotKey{Rule: "product", Key: api.KeyOf("x", "y")})
	n.tell(unknown)
	until(t, "what is unknown is skipped", func() bool { return isHot(d, "/e") })

	n.change(func() {
		n.first = `{"instance":"i","from":0,"version":9,"reset":true,"more":false,"hot":[{"rule":"product","key":["/a"],"ttl_ms":60000},{"rule":"product","key":["/always"]}],"cold":[],"changed":[]}`
	})
	n.tell(update(5, 6, "/lost"))
	until(t, "the state is that after the gap", func() bool { return isHot(d, "/always") && isHot(d, "/a") && !isHot(d, "/d") && !isHot(d, "/e") })
	if n.watched != 2 || isHot(d, "/lost") {
		t.Errorf("%d watches, want one more after the gap", n.watched)
	}
	n.change(func() {
		n.first = `{"instance":"j","from":0,"version":1,"reset":true,"more":false,"hot":[{"rule":"product","key":["/j"],"ttl_ms":60000}],"cold":[],"changed":[]}`
	})
	n.kill()
	n.revive()
	until(t, "the node was started again", func() bool { return isHot(d, "/j") })
	if !isHot(d, "/a") || !isHot(d, "/always") {
		t.Error("keys are not hot any more because a node was started again")
	}
}

// A key is hot while it is hot on any node.
func TestHotOnTwoNodes(t *testing.T) {
	a, b := startScripted(t), startScripted(t)
	_, d := hotFleet(t, FleetConfig{Nodes: []string{a.addr, b.addr}})
	a.tell(update(0, 1, "/k", "/a"))
	b.tell(update(0, 1, "/k", "/b"))
	until(t, "the keys are hot", func() bool { return isHot(d, "/a") && isHot(d, "/b") && isHot(d, "/k") })
	cold := update(1, 2)
	cold.Cold = ruleKeys("/k", "/a")
	a.tell(cold)
	until(t, "/a is cold", func() bool { return !isHot(d, "/a") })
	if !isHot(d, "/k") {
		t.Error("a key that is hot on another node is cold")
	}
}

// The cache of a Detector keeps the keys that are hot in the fleet, and loads changed values.
func TestHotCache(t *testing.T) {
	n, f, d := newScripted(t)
	var loads atomic.Int64
	cache := must.Get(hotkey.NewCache(d, hotkey.CacheConfig[int64]{
		Rule: "product", Load: func(context.Context, string) (int64, error) { return loads.Add(1), nil },
	}))(t)
	want := func(what string, want int64) {
		t.Helper()
		if v, err := cache.Get(t.Context(), "/a"); v != want || err != nil {
			t.Fatalf("%s: Get is %d, %v, want %d", what, v, err, want)
		}
	}
	want("not hot", 1)
	want("not hot", 2)
	n.tell(update(0, 1, "/a"))
	until(t, "the key is hot", func() bool { _, ok, hot := cache.Peek("/a"); return hot && !ok })
	want("hot", 3)
	want("hot", 3)
	n.tell(update(1, 2, "/a")) // is hot for longer
	n.tell(update(2, 3, "/next"))
	until(t, "the renewal has come", func() bool { return isHot(d, "/next") })
	want("renewed", 3)
	changed := update(3, 4)
	changed.Changed = ruleKeys("/a")
	n.tell(changed)
	until(t, "the value is removed", func() bool { _, ok, hot := cache.Peek("/a"); return hot && !ok })
	want("changed", 4)
	if err := f.Changed(t.Context(), "product", "/a"); err != nil || fmt.Sprint(n.changed) != "[product /a]" {
		t.Errorf("%v; the node received %q", err, n.changed)
	}
	want("changed here", 5)
	// A change that was missed while there was no connection.
	n.change(func() {
		n.first = `{"instance":"i","from":0,"version":9,"reset":true,"more":false,"hot":[{"rule":"product","key":["/a"],"ttl_ms":60000,"changed":8},{"rule":"product","key":["/z"],"ttl_ms":1}],"cold":[],"changed":[]}`
	})
	// Reports on their way to a node that is killed may be lost.
	toldAll := func() bool { return n.cachesTold(t) == statsOf(cache) }
	until(t, "the node is told of the cache", toldAll)
	n.kill()
	n.revive()
	until(t, "the value is removed", func() bool { _, ok, hot := cache.Peek("/a"); return hot && !ok })
	want("changed meanwhile", 6)
	until(t, "the node is told of the cache", toldAll)
	n.kill()
	until(t, "the node is down", func() bool { return !f.hotUp(n.addr) })
	want("without a node", 6)
	// Commands have a connection of their own, whose end may be seen only in its next use.
	until(t, "there is no node for Changed", func() bool {
		err := f.Changed(t.Context(), "product", "/a")
		if err == nil || !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrUnanswered) {
			t.Fatalf("Changed without a node: %v", err)
		}
		return errors.Is(err, ErrNoNode)
	})
	for range 100 {
		cache.IsHot("/here")
	}
	if !cache.IsHot("/here") {
		t.Error("without a node the Detector does not detect alone")
	}
	n.revive()
	until(t, "the node is told of the cache", toldAll)
	f.Close()
	if s, got := cache.Stats(), n.cachesTold(t); got != statsOf(cache) || s.Hits != 3 {
		t.Errorf("the node received %+v; the cache has %+v", got, s)
	}
}

// cachesTold returns the sums of all reports about caches to n under the rule product.
func (n *scriptedNode) cachesTold(t *testing.T) (all [4]uint64) {
	t.Helper()
	for _, c := range locked(n, func() []string { return slices.Clone(n.caches) }) {
		var r [4]uint64
		must.Get(fmt.Sscanf(c, "product %d %d %d %d", &r[0], &r[1], &r[2], &r[3]))(t)
		for i := range r {
			all[i] += r[i]
		}
	}
	return all
}

// statsOf returns the statistics of c for a node.
func statsOf(c *hotkey.Cache[int64]) [4]uint64 {
	s := c.Stats()
	return [4]uint64{s.Hits, s.Misses, s.Loads, s.Stale}
}

// Without any node, keys are hot until their time ends.
func TestHotWithoutNodes(t *testing.T) {
	n, f, d := newScripted(t)
	short := update(0, 1, "/long", "/short")
	short.Hot[1].TTL = 50
	told := d.Now()
	n.tell(short)
	until(t, "the keys are hot", func() bool { return isHot(d, "/long") })
	n.kill()
	until(t, "the node is down", func() bool { return !f.hotUp(n.addr) })
	if _, hot := under(d, "product").HotAt(told.Add(59*time.Second), "/long"); !hot {
		t.Error("a key is cold before its time is over")
	}
	if _, hot := under(d, "product").HotAt(d.Now().Add(61*time.Second), "/long"); hot {
		t.Error("a key is hot although its time is over")
	}
	until(t, "the other is cold", func() bool { return !isHot(d, "/short") })
}

func BenchmarkHotReport(b *testing.B) {
	f := mustFleet(b, FleetConfig{Nodes: []string{"127.0.0.1:1"}, Detector: mustDetector(b)})
	b.ReportAllocs()
	for b.Loop() {
		f.hot.tally.add(0, "/product/1234567", 1, 1, true)
	}
}

// under returns the handle for a rule of d that exists.
func under(d *hotkey.Detector, rule string) *hotkey.RuleDetector {
	r, err := d.Rule(rule)
	if err != nil {
		panic(err)
	}
	return r
}
