package ratelimit

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"
)

// To count bans is to look at those that are over, not at those that hold.
func TestCountsLookAtBansThatAreOver(t *testing.T) {
	const held, over = 5000, 10
	table, seed := newBanTable(banTableConfig{most: 1 << 14}), maphash.MakeSeed()
	for i := range held + over {
		key := fmt.Sprint("key ", i)
		b := &Ban{Span: time.Second, For: time.Hour, Factor: 2, Max: 24 * time.Hour, Remember: 48 * time.Hour}
		if i < over {
			b.For = time.Minute
		}
		if _, ok := table.start(uint32(1+i%2), maphash.String(seed, key), []byte(key), b, 0, 0); !ok {
			t.Fatal("no room")
		}
	}
	now, looks := int64(2*time.Minute), 0
	for i := range table.shards {
		for j := range table.shards[i].heaps {
			table.shards[i].heaps[j].over(table, now, 0, func(*banEntry) { looks++ })
		}
	}
	c := table.counts(now)
	if looks != over || c.known != held+over || c.held[1] != held/2 || c.held[2] != held/2 {
		t.Errorf("%d looks, %d known, held %v; want %d, %d and %d each", looks, c.known, c.held, over, held+over, held/2)
	}
}
