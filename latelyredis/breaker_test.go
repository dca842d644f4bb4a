package latelyredis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
)

// testNodeStopped stops one node of a cluster while goroutines decide about keys on all: calls for its keys soon fail at
// once, others are answered, and the store decides about all again as soon as the node goes on.
func testNodeStopped(t *testing.T, c *redistest.Cluster) {
	rules := anyRules(t)
	client := c.Client(t, func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }) // see docs/redis.md
	store := newStore(t, client, rules, prefixed())
	keys := make([][]string, len(c.Nodes))
	list, _ := c.Owner(t, "{bans}")
	for i := range 60 {
		key := fmt.Sprint("k", i)
		node, _ := c.Owner(t, "{path="+key+"}")
		keys[node] = append(keys[node], key)
		if r := take(context.Background(), store, rules, key); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	stopped, other := (list+1)%3, (list+2)%3
	c.Nodes[stopped].Process().Signal(syscall.SIGSTOP)
	defer c.Nodes[stopped].Process().Signal(syscall.SIGCONT)
	var atOnce atomic.Int64
	for range 100 {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer cancel()
				if r := take(ctx, store, rules, keys[stopped][i%len(keys[stopped])]); errors.Is(r.Err, latelyredis.ErrAway) {
					atOnce.Add(1)
				}
			})
		}
		all.Wait()
		key := keys[other][0]
		eventually(t, "the other nodes decide", func() bool { return take(context.Background(), store, rules, key).Err == nil })
	}
	if atOnce.Load() < 2000 { // each range has its first calls and its trials
		t.Errorf("of 4000 calls about the node that is stopped %d failed at once, want most", atOnce.Load())
	}
	c.Nodes[stopped].Process().Signal(syscall.SIGCONT)
	for _, key := range keys[stopped] {
		eventually(t, "the store decides again", func() bool { return take(context.Background(), store, rules, key).Err == nil })
	}
}

// testSlots compares the slots of random keys with a server's.
func testSlots(t *testing.T, c *redistest.Cluster) {
	rnd := randtest.New(t)
	client := c.Nodes[0].Client(t)
	for range 100 {
		tag := make([]byte, rnd.IntN(60)+1)
		for i := range tag {
			tag[i] = byte('a' + rnd.IntN(26))
		}
		key := fmt.Sprintf("lately:{%s}:rule", tag)
		if got, want := fmt.Sprint(latelyredis.SlotOf(key)), do(t, client, "CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("%s: slot %s, want %s", key, got, want)
		}
	}
}
