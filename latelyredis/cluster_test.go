package latelyredis_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestCluster has the store on three nodes.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3)
	t.Run("SlotMoves", func(t *testing.T) { testSlotMoves(t, c) })
	t.Run("BatchedMoves", func(t *testing.T) { testBatchedMoves(t, c) })
	t.Run("NewSubject", func(t *testing.T) { testNewSubject(t, c) })
	t.Run("Bans", func(t *testing.T) { testClusterBans(t, c) })
	t.Run("Conforms", func(t *testing.T) { conforms(t, c.Client(t), 30) }) // not earlier: it leaves many keys, which others would move
	t.Run("Counters", func(t *testing.T) { testClusterCounters(t, c) })
	t.Run("Slots", func(t *testing.T) { testSlots(t, c) })
	t.Run("NodeStopped", func(t *testing.T) { testNodeStopped(t, c) })
	t.Run("Check", func(t *testing.T) { testClusterCheck(t, c) })
	t.Run("OneNode", func(t *testing.T) { testOneNode(t, c) })
}

// inSlot returns n keys whose subjects under a rule by path are in the same slot as the first, another than the slot of the
// list of bans.
func inSlot(t testing.TB, c *redistest.Cluster, prefix string, n int) (keys []string, node, slot int) {
	t.Helper()
	client := c.Nodes[0].Client(t)
	want := ""
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("k", i)
		if got := do(t, client, "CLUSTER", "KEYSLOT", prefix+"{path="+key+"}:one"); want == "" || got == want {
			keys, want = append(keys, key), got
		}
	}
	node, slot = c.Owner(t, "{path="+keys[0]+"}")
	return keys, node, slot
}

// A flood takes one key after the other from a store.
type flood struct {
	rules    *ratelimit.Set
	subjects []int // the rules
	keys     []string
	each     int // how often each goroutine takes each key, at least
	allowed  map[string]*atomic.Int64
	answered atomic.Int64
}

func newFlood(rules *ratelimit.Set, subjects []int, each int, keys ...string) *flood {
	f := &flood{rules: rules, subjects: subjects, keys: keys, each: each, allowed: make(map[string]*atomic.Int64)}
	for _, k := range keys {
		f.allowed[k] = new(atomic.Int64)
	}
	return f
}

// run takes keys, at least until ends is closed if it is not nil, and reports each request without a decision. A slot that
// moves may have one of the keys of a subject on each node: then nothing is counted, and it takes again.
func (f *flood) run(t testing.TB, s *latelyredis.Store, ends <-chan struct{}) {
	goesOn := func() bool {
		select {
		case <-ends:
			return false
		default:
			return ends != nil
		}
	}
	for i := 0; i < f.each || goesOn(); i++ {
		for _, key := range f.keys {
			for {
				r := f.ask(s, key)
				if len(f.subjects) > 1 && tryAgain(r.Err) {
					continue
				}
				if f.answered.Add(1); r.Err != nil {
					t.Errorf("%s: %v", key, r.Err)
				} else if !r.Subjects[0].Outcome.Refused {
					f.allowed[key].Add(1)
				}
				break
			}
		}
	}
}

func (f *flood) ask(s *latelyredis.Store, key string) *latelyredis.Request {
	r := &latelyredis.Request{Set: f.rules, Cost: 1}
	for _, i := range f.subjects {
		r.Subjects = append(r.Subjects, about(i, key))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Decide(ctx, []*latelyredis.Request{r})
	return r
}

// testSlotMoves moves a slot from node to node while two stores with clients of their own decide about its keys: each
// decision is made, and exactly the limit is allowed, whether a subject has one key or two.
func testSlotMoves(t *testing.T, c *redistest.Cluster) {
	const limit, goroutines = 400, 4
	path, config := match.MustKey("path"), latelyredis.Config{Prefix: "lately:"} // which the user is limited to
	documentedUser(t, c.Nodes...)
	rules := set(t, lasting(time.Hour, limited("one", path, ratelimit.Sliding, limit)), lasting(time.Hour, limited("other", path, ratelimit.Exact, limit)))
	keys, from, slot := inSlot(t, c, config.Prefix, 6)
	to := (from + 1) % 3
	each := limit/goroutines + 1
	single, double := newFlood(rules, []int{0}, each, keys[:3]...), newFlood(rules, []int{0, 1}, each, keys[3:]...)
	var all sync.WaitGroup
	ends := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(ends)
		all.Wait()
	})
	defer end()
	for range 2 {
		store := newStore(t, c.Client(t, asDocumented), rules, config)
		for range goroutines / 2 {
			all.Go(func() { single.run(t, store, ends) })
			all.Go(func() { double.run(t, store, ends) })
		}
	}
	more := func(n int64) {
		t.Helper()
		before := single.answered.Load()
		eventually(t, "more is decided", func() bool { return single.answered.Load() >= before+n })
	}
	more(100)
	move := c.Begin(t, slot, from, to)
	more(100)
	for move.Keys(t, 3) > 0 {
		more(20)
	}
	more(100) // by ASK
	move.End(t)
	more(100) // by MOVED
	end()
	for _, f := range []*flood{single, double} {
		for key, n := range f.allowed {
			if n.Load() != limit {
				t.Errorf("%s, %d rules: %d allowed, want %d", key, len(f.subjects), n.Load(), limit)
			}
		}
	}
	if now, _ := c.Owner(t, "{path="+keys[0]+"}"); now != to {
		t.Errorf("node %d has the slot, want %d", now, to)
	}
}

// testBatchedMoves moves the slot of a key from node to node while three nodes with Batched use up its limit: they allow
// it, and no more than the bound.
func testBatchedMoves(t *testing.T, c *redistest.Cluster) {
	const n, moves = 20_000, 3
	contest := newContest(t, batched(), n, c.Client(t), c.Client(t), c.Client(t))
	from, slot := c.Owner(t, "{path=k}")
	contest.upTo.Store(n / 10)
	var load sync.WaitGroup
	defer load.Wait()
	defer contest.upTo.Store(math.MaxInt64)
	load.Go(func() { contest.run(t) })
	more := func() {
		t.Helper()
		upTo := contest.upTo.Load()
		eventually(t, "more is allowed", func() bool { return contest.allowed.Load() >= upTo })
		contest.upTo.Store(upTo + n/(4*moves))
	}
	for range moves {
		to := (from + 1) % 3
		move := c.Begin(t, slot, from, to)
		more()
		for move.Keys(t, 1) > 0 {
		}
		more() // by ASK
		move.End(t)
		more() // by MOVED
		from = to
	}
	move := c.Begin(t, slot, from, (from+1)%3)
	defer move.End(t)
	contest.upTo.Store(math.MaxInt64)
	load.Wait()
}

// testNewSubject takes a subject of two new keys in a slot that moves: the server decides about it only after the move, and
// the store repeats its call until then.
func testNewSubject(t *testing.T, c *redistest.Cluster) {
	path, config := match.MustKey("path"), prefixed()
	rules := set(t, limited("one", path, ratelimit.Sliding, 10), limited("other", path, ratelimit.Exact, 10))
	store := newStore(t, c.Client(t), rules, config)
	from, slot := c.Owner(t, "{path=new}")
	to := (from + 1) % 3
	move := c.Begin(t, slot, from, to)
	target := c.Nodes[to].Client(t)
	do(t, target, "CONFIG", "RESETSTAT")
	if r := take(context.Background(), store, rules, "new"); !tryAgain(r.Err) {
		t.Errorf("%v while the slot moves, want TRYAGAIN", r.Err)
	}
	rejected := 0
	for line := range strings.Lines(do(t, target, "INFO", "commandstats")) {
		if _, n, ok := strings.Cut(strings.TrimSpace(line), "rejected_calls="); ok && strings.HasPrefix(line, "cmdstat_eval") {
			n, _, _ = strings.Cut(n, ",")
			of, _ := strconv.Atoi(n)
			rejected += of
		}
	}
	if rejected < 100 {
		t.Errorf("the node answered %d times with TRYAGAIN, want more", rejected)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if r := take(ctx, store, rules, "new"); r.Err == nil {
		t.Error("decided while the slot moves")
	}
	move.End(t)
	if r := take(context.Background(), store, rules, "new"); r.Err != nil || r.Subjects[0].Outcome.Remaining != 9 || r.Subjects[1].Outcome.Remaining != 9 {
		t.Errorf("%v, %+v when the slot has moved, want 9 left of each: nothing was counted before", r.Err, r.Subjects)
	}
}

// tryAgain reports whether a call was not judged because the keys of its subject are on two nodes.
func tryAgain(err error) bool {
	answer, ok := errors.AsType[*latelyredis.ServerError](err)
	return ok && answer.Code == "TRYAGAIN"
}

// testClusterBans has the list of bans on one node and the records on all: bans of each node are received and listed. Those
// that began while the slot of the list moved hold at once, and are listed after the move.
func testClusterBans(t *testing.T, c *redistest.Cluster) {
	config := prefixed()
	rules := set(t, banning("flood", match.MustKey("path"), 0))
	nodes := []*node{newNode(t, c.Client(t), rules, config), newNode(t, c.Client(t), rules, config)}
	allKnown(t, nodes)
	begin := func(first, last int) {
		t.Helper()
		for i := first; i < last; i++ {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			r := one(rules, about(0, fmt.Sprint("k", i)))
			nodes[i%2].Decide(ctx, []*latelyredis.Request{r})
			cancel()
			if r.Err != nil || !r.Subjects[0].Outcome.Started {
				t.Fatalf("%v, %+v, want that the first hit begins the ban", r.Err, r.Subjects[0].Outcome)
			}
		}
	}
	copied := func(last int) {
		t.Helper()
		for i := range last {
			allCopied(t, nodes, "flood", fmt.Sprint("k", i))
		}
	}
	begin(0, 20)
	copied(20)
	from, slot := c.Owner(t, "{bans}")
	move := c.Begin(t, slot, from, (from+1)%3)
	for move.Keys(t, 100) > 0 {
	}
	begin(20, 30)
	for i := range 30 {
		if !nodes[(i+1)%2].banned(t, 0, fmt.Sprint("k", i)) {
			t.Errorf("the ban of k%d does not hold on the other node while the list moves", i)
		}
	}
	begin(30, 40)
	move.End(t)
	copied(40)
	begin(40, 60)
	copied(60)
	owners := map[int]bool{}
	for i := range 60 {
		owner, _ := c.Owner(t, fmt.Sprintf("{path=k%d}", i))
		owners[owner] = true
	}
	if len(owners) != 3 {
		t.Errorf("the records are on %d nodes, want 3", len(owners))
	}
	if n := len(listed(t, nodes[0].Store)); n != 60 {
		t.Errorf("%d bans are listed, want 60", n)
	}
	for _, n := range nodes {
		n.wantTold(t, 60)
	}
}

// testClusterCheck has one node of three evict keys.
func testClusterCheck(t *testing.T, c *redistest.Cluster) {
	store := open(t, c.Client(t), anyRules(t))
	if err := store.Check(context.Background()); err != nil {
		t.Error(err)
	}
	c.Nodes[2].Do(t, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	if err := store.Check(context.Background()); err == nil || !strings.Contains(err.Error(), c.Nodes[2].Addr+": ") {
		t.Errorf("Check returns %v, want the node that evicts keys", err)
	}
	c.Nodes[2].Do(t, "CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
}
