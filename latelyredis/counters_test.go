package latelyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/window"
)

// countedWindows are the windows of counters in tests.
var countedWindows = []window.Window{{Span: time.Second, Slot: time.Second / 10}, {Span: 9 * time.Second, Slot: 900 * time.Millisecond}, {Span: time.Hour, Slot: 6 * time.Minute}}

// A countsRun is random histories of nodes that share a counter, beside one table that counts the same.
type countsRun struct {
	t      testing.TB
	rnd    *rand.Rand
	client rueidis.Client
	config latelyredis.CountersConfig
	time   int64        // in microseconds, as all clocks have it that are right
	redis  atomic.Int64 // the time of the server
	nodes  []*countsNode
	model  *window.Table
	spoil  func(*latelyredis.Counters) // before each pass, or nil
	did    map[string]int
}

type countsNode struct {
	*latelyredis.Counters
	*latelyredis.Counter
	clock atomic.Int64
}

// countersAt returns counters that exchange their counts when the test calls for it.
func countersAt(t testing.TB, client rueidis.Client, prefix string, now, node *atomic.Int64) *latelyredis.Counters {
	t.Helper()
	return must.Get(latelyredis.NewCountersAt(client, latelyredis.CountersConfig{Prefix: prefix}, now, node))(t)
}

// pagesOf returns a new counter.
func pagesOf(t testing.TB, c *latelyredis.Counters, windows ...window.Window) *latelyredis.Counter {
	t.Helper()
	return must.Get(c.Counter("pages", window.TableConfig{}, windows...))(t)
}

// start makes a node, whose clock is up to 100 ms off.
func (r *countsRun) start() *countsNode {
	n := new(countsNode)
	n.clock.Store(r.time + r.rnd.Int64N(2e5) - 1e5)
	n.Counters = countersAt(r.t, r.client, r.config.Prefix, &r.redis, &n.clock)
	n.Counter = pagesOf(r.t, n.Counters, countedWindows...)
	n.Pass(context.Background(), 0) // until then, it counts by its own clock
	return n
}

// pass has a node talk to Redis, which may fail if loses is set.
func (r *countsRun) pass(n *countsNode, loses bool) {
	if r.spoil != nil {
		r.spoil(n.Counters)
	}
	lost := 0
	if loses && r.rnd.IntN(4) == 0 {
		lost = 1 + r.rnd.IntN(2)
	}
	was := n.Complete()
	n.Pass(context.Background(), lost)
	if was != n.Complete() {
		r.did["joins"]++
	}
}

// wait lets time pass everywhere.
func (r *countsRun) wait(d time.Duration) {
	r.time += d.Microseconds()
	r.redis.Add(d.Microseconds())
	for _, n := range r.nodes {
		n.clock.Add(d.Microseconds())
	}
}

// settle has all nodes send and receive everything.
func (r *countsRun) settle() {
	for range 60 {
		for _, n := range r.nodes {
			r.pass(n, false)
		}
		r.wait(10 * time.Millisecond)
	}
}

// step does something.
func (r *countsRun) step() {
	n := r.nodes[r.rnd.IntN(len(r.nodes))]
	switch k := r.rnd.IntN(100); {
	case k < 55:
		key, count := fmt.Sprint("/", r.rnd.IntN(6)), 1+uint64(r.rnd.IntN(5))
		if !n.Add(key, count) {
			r.t.Fatal("no memory")
		}
		r.model.AddAt(n.At(), key, count)
		r.did["adds"]++
	case k < 85:
		r.pass(n, true)
	case k < 97:
		r.wait(time.Duration(r.rnd.IntN(int([...]time.Duration{time.Millisecond, 200 * time.Millisecond, 2 * time.Second}[r.rnd.IntN(3)]))))
	case k < 98:
		r.redis.Add((time.Duration(r.rnd.IntN(3)-1) * time.Minute).Microseconds())
	case k < 99:
		r.settle()
		r.nodes[slices.Index(r.nodes, n)] = r.start()                 // the others have all that it has counted
		do(r.t, r.client, "DEL", r.config.Prefix+"{counters}:wanted") // which expires if it was to write the state
	default:
		r.settle()
		do(r.t, r.client, "DEL", r.config.Prefix+"{counters}:log", r.config.Prefix+"{counters}:time", r.config.Prefix+"{counters}:nodes")
		r.did["deletes"]++
	}
}

// differences returns what nodes count otherwise than the model.
func (r *countsRun) differences() (all []string) {
	for i, n := range r.nodes {
		table, now := n.Counts()
		for _, w := range countedWindows {
			for _, span := range []time.Duration{w.Span, w.Span / 2} {
				top, err := table.TopAt(now, 10, span)
				want, err2 := r.model.TopAt(now, 10, span)
				if err != nil || err2 != nil || !slices.Equal(top, want) {
					all = append(all, fmt.Sprintf("node %d, %v: %v, want %v", i, span, top, want))
				}
			}
		}
	}
	return all
}

// run has random histories until one has differences, which it returns.
func (r *countsRun) run(rounds int) (differences []string) {
	r.did = make(map[string]int)
	for range rounds {
		r.config = latelyredis.CountersConfig{Prefix: prefixed().Prefix}
		r.time = time.Now().UnixMicro()
		r.redis.Store(r.time)
		var err error
		if r.model, err = window.NewTable(window.TableConfig{}, countedWindows...); err != nil {
			r.t.Fatal(err)
		}
		r.nodes = nil
		for range 3 {
			r.nodes = append(r.nodes, r.start())
		}
		for range 150 {
			r.step()
		}
		r.settle()
		if all := r.differences(); len(all) > 0 {
			return all
		}
	}
	return nil
}

// TestCountersLockstep compares random histories of nodes with one table: clocks that differ and are
// set, answers that are lost, nodes that start, and a Redis that loses all.
func TestCountersLockstep(t *testing.T) {
	t.Parallel()
	client := redis(t).client(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	newRun := func() *countsRun {
		return &countsRun{t: t, rnd: rand.New(rand.NewPCG(randtest.Seed(t), 0)), client: client}
	}
	r := newRun()
	if all := r.run(rounds); len(all) > 0 {
		t.Error(all)
	}
	for _, what := range []string{"adds", "joins", "deletes"} {
		if r.did[what] < rounds/5 {
			t.Errorf("only %v", r.did)
		}
	}
	for name, spoil := range map[string]func(*latelyredis.Counters){
		"entries are counted again": (*latelyredis.Counters).ForgetSeqs, "own entries are counted again": (*latelyredis.Counters).ForgetOwn,
	} {
		broken := newRun()
		broken.spoil = spoil
		if len(broken.run(rounds)) == 0 {
			t.Errorf("%s, and no history shows it", name)
		}
	}
}

// sharing returns Counters that share by a client, with a counter of an hour.
func sharing(t testing.TB, client rueidis.Client, config latelyredis.CountersConfig) *countsNode {
	t.Helper()
	n := new(countsNode)
	n.Counters = must.Get(latelyredis.NewCounters(config))(t)
	n.Counter = pagesOf(t, n.Counters, window.Last(time.Hour))
	n.Connect(latelyredis.NewConn(client))
	t.Cleanup(n.Close)
	return n
}

// total returns the adds of all keys in n.
func (n *countsNode) total(t testing.TB) (sum uint64) {
	table, now := n.Counts()
	top, err := table.TopAt(now, 1000, time.Hour)
	if err != nil {
		t.Error(err)
	}
	for _, k := range top {
		sum += k.Hi
	}
	return sum
}

// wantTotal waits until each node has this many adds, and checks that it has no more a little later.
func wantTotal(t testing.TB, want uint64, nodes ...*countsNode) {
	t.Helper()
	for i, n := range nodes {
		eventually(t, fmt.Sprintf("node %d has %d adds", i, want), func() bool { return n.Complete() && n.total(t) >= want })
	}
	for i, n := range nodes {
		if got := n.total(t); got != want {
			t.Errorf("node %d has %d adds, want %d", i, got, want)
		}
		if n.Unshared() != 0 {
			t.Errorf("node %d has not sent %d adds", i, n.Unshared())
		}
	}
}

// TestCountersLoad has goroutines add on nodes while others start and receive the counts, and one ends.
func TestCountersLoad(t *testing.T) {
	client, config := redis(t).client(t), latelyredis.CountersConfig{Prefix: prefixed().Prefix}
	nodes := []*countsNode{sharing(t, client, config), sharing(t, client, config)}
	eventually(t, "both nodes share", func() bool { return nodes[0].Complete() && nodes[1].Complete() })
	var adds atomic.Uint64
	var all sync.WaitGroup
	ends := make(chan struct{})
	load := func(n *countsNode, ends <-chan struct{}) {
		for g := range 2 {
			all.Go(func() {
				for i := g; ; i++ {
					select {
					case <-ends:
						return
					default:
					}
					if n.Add(fmt.Sprintf("/%d", i%200), 2) {
						adds.Add(2)
					}
					if i%100 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
	}
	last := make(chan struct{})
	load(nodes[0], last)
	load(nodes[1], ends)
	for range 3 {
		n := sharing(t, client, config)
		load(n, last)
		eventually(t, "a node that starts has what others counted", n.Complete)
		nodes = append(nodes, n)
	}
	close(ends)
	runtime.Gosched()
	close(last)
	all.Wait()
	nodes[1].Close() // sends the rest
	wantTotal(t, adds.Load(), nodes[0], nodes[2], nodes[3], nodes[4])
}

// TestCountersOutage takes Redis away while nodes count, once for good with all its data. Adds do not fail, and all are in
// the counts of all nodes afterwards.
func TestCountersOutage(t *testing.T) {
	t.Parallel()
	s := own(t)
	var nodes []*countsNode
	for range 3 {
		nodes = append(nodes, sharing(t, s.client(t), latelyredis.CountersConfig{}))
	}
	sum := uint64(0)
	add := func() {
		t.Helper()
		for i, n := range nodes {
			for j := range 50 {
				if !n.Add(fmt.Sprintf("/%d", j%7), uint64(1+i)) {
					t.Fatal("an add fails")
				}
				sum += uint64(1 + i)
			}
		}
	}
	add()
	wantTotal(t, sum, nodes...)
	process := s.Process()
	must.Do(t, process.Signal(syscall.SIGSTOP))
	add()
	if got := nodes[0].total(t); got <= sum/2 {
		t.Errorf("while Redis does not answer, a node has %d adds of %d", got, sum)
	}
	must.Do(t, process.Signal(syscall.SIGCONT))
	wantTotal(t, sum, nodes...)
	s.Kill()
	add()
	must.Do(t, s.Run())
	add()
	wantTotal(t, sum, nodes...)
	// A new node receives all, although Redis has lost its data.
	wantTotal(t, sum, sharing(t, s.client(t), latelyredis.CountersConfig{}))
}

// testClusterCounters has counters in a cluster, by the documented user, while the slot of their keys moves.
func testClusterCounters(t *testing.T, c *redistest.Cluster) {
	documentedUser(t, c.Nodes...)
	var nodes []*countsNode
	for range 2 {
		nodes = append(nodes, sharing(t, c.Client(t, asDocumented), latelyredis.CountersConfig{}))
	}
	sum := uint64(0)
	add := func() {
		t.Helper()
		for _, n := range nodes {
			for i := range 20 {
				n.Add(fmt.Sprintf("/%d", i), 1)
				sum++
			}
		}
	}
	add()
	wantTotal(t, sum, nodes...)
	from, slot := c.Owner(t, "{counters}")
	move := c.Begin(t, slot, from, (from+1)%3)
	add()
	for move.Keys(t, 1) > 0 {
		add()
	}
	move.End(t)
	add()
	wantTotal(t, sum, append(nodes, sharing(t, c.Client(t, asDocumented), latelyredis.CountersConfig{}))...)
}

// TestCountersForm has a newer version write an entry, and then a state, in another form: a node leaves them out, reports
// it, and counts what it can read.
func TestCountersForm(t *testing.T) {
	client, prefix := redis(t).client(t), prefixed().Prefix
	now, clock := clockAt(time.Now()), clockAt(time.Now())
	var counters [3]*latelyredis.Counters
	var pages [3]*latelyredis.Counter
	for i := range counters {
		counters[i] = countersAt(t, client, prefix, now, clock)
		pages[i] = pagesOf(t, counters[i], window.Last(time.Hour))
	}
	pass := func(i int) (more bool, err error) { return counters[i].Pass(context.Background(), 0) }
	for i := range 2 { // both are complete
		for try := 0; !counters[i].Complete() && try < 100; try++ {
			for j := range i + 1 {
				must.Get(pass(j))(t)
			}
		}
	}
	tag := prefix + "{counters}:"
	do(t, client, "XADD", tag+"log", "*", "e", "\x02 another form")
	pages[0].Add("/", 5)
	for _, i := range []int{0, 1} {
		must.Get(pass(i))(t)
	}
	last := do(t, client, "XADD", tag+"log", "*", "e", "")
	do(t, client, "DEL", tag+"state")
	do(t, client, "XADD", tag+"state", "*", "first", "\x02 another form")
	do(t, client, "XADD", tag+"state", "*", "end", last)
	pages[2].Add("/", 1)
	if more, err := pass(2); err == nil || more || !strings.Contains(err.Error(), "upgrade this one") {
		t.Errorf("a state in another form: %v, and the node requests it again at once: %v", err, more)
	}
	for i, want := range []struct{ sum, unread uint64 }{{5, 1}, {5, 1}, {1, 0}} {
		table, at := pages[i].Counts()
		sum := table.SumAt(at, "/")
		if sum != want.sum || counters[i].Unread() != want.unread || counters[i].Complete() != (i < 2) {
			t.Errorf("node %d: %d adds, %d unread, complete %v, want %+v", i, sum, counters[i].Unread(), counters[i].Complete(), want)
		}
	}
	do(t, client, "DEL", tag+"state")
	for try := 0; !counters[2].Complete() && try < 100; try++ {
		for _, i := range []int{2, 0} {
			must.Get(pass(i))(t)
		}
	}
	if table, at := pages[2].Counts(); table.SumAt(at, "/") != 6 {
		t.Error("a node that was upgraded does not have the counts of the others")
	}
}

// TestCountersFull counts more keys than a node keeps until Redis has confirmed them: it reports how many others were not
// sent.
func TestCountersFull(t *testing.T) {
	c := countersAt(t, redis(t).client(t), prefixed().Prefix, clockAt(time.Now()), clockAt(time.Now()))
	pages := pagesOf(t, c, window.Window{Span: time.Hour, Slot: time.Hour})
	const keys = latelyredis.MaxOpen + 1000
	for i := range keys {
		if !pages.Add(fmt.Sprintf("/%d", i), 1) {
			t.Fatal("no memory")
		}
	}
	if got := c.Unshared(); got != keys-latelyredis.MaxOpen {
		t.Errorf("%d of %d adds are not sent, want %d", got, keys, keys-latelyredis.MaxOpen)
	}
	if testing.AllocsPerRun(1000, func() { pages.Add("/7", 1) }) > 0 {
		t.Error("an add to a key that was noted allocates")
	}
	if table, _ := pages.Counts(); table.Len() != keys {
		t.Errorf("%d keys are counted, want %d", table.Len(), keys)
	}
}

// TestCountersConfig rejects what cannot be shared.
func TestCountersConfig(t *testing.T) {
	if _, err := latelyredis.NewCounters(latelyredis.CountersConfig{Prefix: "a{b"}); err == nil || !strings.Contains(err.Error(), "must not contain a brace") {
		t.Errorf("a prefix with a brace: %v", err)
	}
	c := must.Get(latelyredis.NewCounters(latelyredis.CountersConfig{}))(t)
	if _, err := c.Counter(strings.Repeat("a", 1025), window.TableConfig{}, window.Last(time.Hour)); err == nil || !strings.Contains(err.Error(), "must be at most 1024") {
		t.Errorf("a long name: %v", err)
	}
	if _, err := c.Counter("a", window.TableConfig{}); err == nil {
		t.Error("a counter without windows is accepted")
	}
}
