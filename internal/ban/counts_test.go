package ban

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"testing"
	"time"
)

// A second count looks at no more entries when more bans are remembered, and when more hold.
func TestCountsDoNotWalk(t *testing.T) {
	table, seed := NewTable(Config{Most: 1 << 15}), maphash.MakeSeed()
	begin := func(n int, what string, d time.Duration) {
		for i := range n {
			key := fmt.Sprint(what, i)
			p := &Policy{Span: time.Second, For: d, Remember: 48 * time.Hour}
			if _, ok := table.Start(uint32(1+i%2), maphash.String(seed, key), []byte(key), p, 0, 0); !ok {
				t.Fatal("no memory")
			}
		}
	}
	begin(5000, "held", time.Hour)
	now := int64(2 * time.Minute)
	table.Counts(now)
	few := table.advance(now)
	begin(10_000, "remembered", time.Minute)
	if c := table.Counts(now); c.Len != 15_000 || c.Held[1] != 2500 || c.Held[2] != 2500 {
		t.Errorf("%d bans, held %v; want 15000, and 2500 of each rule", c.Len, c.Held)
	}
	if looks := table.advance(now); looks > few {
		t.Errorf("a second count looks at %d entries, and at %d when no ban is remembered", looks, few)
	}
	checkTable(t, table)
}

// TestCountsAgainstModel begins, adds and removes bans at random, with steps of the time
// forth and back, and compares the counts with those of a map. The table has one shard,
// so the model knows which bans expire.
func TestCountsAgainstModel(t *testing.T) {
	rnd := random(t)
	table, seed := NewTable(Config{Most: 200}), maphash.MakeSeed()
	if len(table.shards) != 1 {
		t.Fatalf("%d shards", len(table.shards))
	}
	type id struct {
		rule uint32
		key  string
	}
	type times struct{ until, expires int64 }
	model := map[id]times{}
	now, newest := int64(0), int64(math.MinInt64)
	ended, expired, back := 0, 0, 0
	for step := range 20_000 {
		now += rnd.Int64N(2e9)
		if rnd.IntN(50) == 0 {
			now -= rnd.Int64N(60e9)
			back++
		}
		newest = max(newest, now)
		k := id{uint32(1 + rnd.IntN(3)), fmt.Sprint(rnd.IntN(40))}
		hash := maphash.String(seed, k.key)
		expire := func() {
			gone := slices.SortedFunc(maps.Keys(model), func(a, b id) int { return int(model[a].expires - model[b].expires) })
			left := fewEntries
			for _, k := range gone {
				if model[k].expires < now && model[k].until <= newest && left > 0 {
					delete(model, k)
					left--
					expired++
				}
			}
		}
		switch op := rnd.IntN(10); {
		case op < 6:
			p := &Policy{Span: time.Second, For: time.Duration(1+rnd.IntN(100)) * time.Second, Remember: time.Duration(1+rnd.IntN(100)) * time.Second}
			table.advance(now) // so that all that have ended are known to it
			expire()
			until, ok := table.Start(k.rule, hash, []byte(k.key), p, now, 0)
			if !ok {
				t.Fatal("no memory")
			}
			model[k] = times{until, until + int64(p.Remember)}
		case op < 8:
			table.Remove(k.rule, hash, []byte(k.key), now)
			delete(model, k)
		}
		want := map[uint32]int{}
		for k, b := range model {
			if b.until > newest {
				want[k.rule]++
			} else {
				ended++
			}
		}
		if c := table.Counts(now); c.Len != len(model) || !maps.Equal(c.Held, want) {
			t.Fatalf("step %d: %d bans, held %v; want %d and %v", step, c.Len, c.Held, len(model), want)
		}
	}
	if ended == 0 || expired == 0 || back == 0 {
		t.Errorf("%d ended, %d expired, %d steps back", ended, expired, back)
	}
	checkTable(t, table)
}
