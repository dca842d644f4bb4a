package latelyredis_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestFailover kills the primary under load after its replica was cut off, and has Sentinel promote the replica: the events
// allowed before the cut and after the failover are the limit together, so at most those allowed in between are allowed in
// addition. The ban of that time is written again. The old primary returns. In the long form the store is then tested for
// conformance.
func TestFailover(t *testing.T) {
	t.Parallel()
	const limit = 400
	w, config := redistest.NewWatched(t), prefixed()
	path := match.MustKey("path")
	rules := set(t, lasting(time.Hour, limited("limit", path, ratelimit.Sliding, limit)), banning("flood", match.MustKey("host"), 0))
	documentedUser(t, w.Primary, w.Replica)
	config.Prefix = "" // which the user is limited to
	nodes := []*node{newNode(t, w.Client(t, asDocumented), rules, config), newNode(t, w.Client(t, asDocumented), rules, config)}
	allKnown(t, nodes)
	f := newFlood(rules, []int{0}, 40, "k")
	for _, n := range nodes {
		f.run(t, n.Store, nil)
	}
	ask(t, nodes[0].Store, rules, about(1, "before"))
	w.Cut(t)
	before := f.allowed["k"].Load()

	ask(t, nodes[0].Store, rules, about(1, "lost"))
	allCopied(t, nodes, "flood", "before", "lost")
	for _, n := range nodes {
		f.run(t, n.Store, nil)
	}
	together := func(until func(r *latelyredis.Request) bool) *sync.WaitGroup {
		all := new(sync.WaitGroup)
		for i := range 4 {
			all.Go(func() {
				for {
					r := f.ask(nodes[i%2].Store, "k")
					if r.Err == nil && !r.Subjects[0].Outcome.Refused {
						f.allowed["k"].Add(1)
					}
					if until(r) {
						return
					}
				}
			})
		}
		return all
	}
	fails := together(func(r *latelyredis.Request) bool { return r.Err != nil })
	eventually(t, "load", func() bool { return f.allowed["k"].Load() >= 200 })
	w.Primary.Process().Kill()
	fails.Wait()
	lost := f.allowed["k"].Load() - before
	var counted atomic.Int64 // at most, without an answer
	ends := together(func(r *latelyredis.Request) bool {
		if r.Err != nil {
			counted.Add(1)
			time.Sleep(time.Millisecond) // errors need no time
		}
		return r.Err == nil && r.Subjects[0].Outcome.Refused
	})
	w.Fail(t)
	ends.Wait()
	after := f.allowed["k"].Load() - before - lost
	if before != 80 || lost < 120 || before+after > limit || before+after < limit-counted.Load() {
		t.Errorf("%d allowed before the cut, %d lost, and %d after the failover: want 80, at least 120, and %d before and after", before, lost, after, limit)
	}
	late := quiet(t, w.Client(t), rules, config)
	for _, key := range []string{"before", "lost"} {
		eventually(t, "the ban is in its record on the new primary: "+key, func() bool { return peek(t, late, rules, about(1, key)).Banned })
	}
	for _, n := range nodes {
		n.wantTold(t, 2)
	}
	testOldPrimary(t, w, f, nodes)
	if !testing.Short() { // on the new primary, a server like that of TestConforms
		t.Run("Conforms", func(t *testing.T) { conforms(t, w.Client(t), 30) })
	}
}

// testOldPrimary has the primary that was killed return, with nothing, until it is a replica: the nodes
// go on with the new one, which refuses, and with the bans.
func testOldPrimary(t *testing.T, w *redistest.Watched, f *flood, nodes []*node) {
	before := f.allowed["k"].Load()
	ends := make(chan struct{})
	var load sync.WaitGroup
	for _, n := range nodes {
		load.Go(func() { f.run(t, n.Store, ends) })
	}
	w.Return(t)
	asked := f.answered.Load()
	eventually(t, "more is decided", func() bool { return f.answered.Load() >= asked+100 })
	close(ends)
	load.Wait()
	if n := f.allowed["k"].Load() - before; n > 0 {
		t.Errorf("%d allowed since the old primary has returned, want none: the limit was reached", n)
	}
	for _, key := range []string{"before", "lost"} {
		if !nodes[0].banned(t, 1, key) {
			t.Errorf("the ban of %s does not hold since the old primary has returned", key)
		}
	}
}
