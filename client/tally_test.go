package client

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// taken takes everything from a tally, into sums by rule and key.
func takeAll(t *tally, into map[string]uint64) {
	t.take(func(r tallyRecord) { into[fmt.Sprint(r.rule, r.key)] += r.n })
}

func neverUrgent(rules int) []uint64 {
	all := make([]uint64, rules)
	for i := range all {
		all[i] = math.MaxUint64
	}
	return all
}

// Concurrent adds are each taken once, also those made while the tally is taken.
func TestConcurrentTallyTakesAdds(t *testing.T) {
	counts := newTally(4<<20, neverUrgent(3), nil)
	const goroutines, each = 8, 2000
	want := make(map[string]uint64)
	var mu sync.Mutex
	var adders, taker sync.WaitGroup
	var done atomic.Bool
	for g := range goroutines {
		seed := randtest.Seed(t)
		adders.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			mine := make(map[string]uint64)
			for i := range each {
				rule, key, n := rng.IntN(3), fmt.Sprint("k", rng.IntN(1+rng.IntN(500))), uint64(rng.IntN(4))
				counts.add(rule, key, n, int64(i), g%2 == 0)
				mine[fmt.Sprint(rule, key)] += n
			}
			mu.Lock()
			defer mu.Unlock()
			for k, n := range mine {
				want[k] += n
			}
		})
	}
	got := make(map[string]uint64)
	taker.Go(func() {
		for !done.Load() {
			takeAll(counts, got)
		}
	})
	adders.Wait()
	done.Store(true)
	taker.Wait()
	takeAll(counts, got)
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("key %s has %d, want %d", k, got[k], n)
		}
	}
	if added, pending, dropped := counts.sums(); pending != 0 || dropped != 0 || added == 0 {
		t.Errorf("%d added, %d pending, %d dropped", added, pending, dropped)
	}
}

// Under a flood of keys the memory is bounded, each event is pending or dropped, and the
// keys with most events are kept.
func TestTallyKeepsTheHottest(t *testing.T) {
	const most, hot = 1 << 16, 20 // a shard holds some forty keys
	counts := newTally(most, neverUrgent(1), nil)
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	want := make(map[string]uint64)
	for i := range 30_000 {
		counts.add(0, fmt.Sprint("cold-", i), 1, 0, false)
		if i%10 == 0 {
			key := fmt.Sprint("hot-", rng.IntN(hot))
			counts.add(0, key, 1, 0, false)
			want[key]++
		}
	}
	added, pending, dropped := counts.sums()
	if added != 33_000 || added != pending+dropped || dropped == 0 {
		t.Errorf("%d added, %d pending, %d dropped", added, pending, dropped)
	}
	for i := range counts.shards {
		if n := counts.shards[i].open.bytes; n > most/tallyShards {
			t.Errorf("a shard has %d bytes, more than %d", n, most/tallyShards)
		}
	}
	got := make(map[string]uint64)
	takeAll(counts, got)
	sum := uint64(0)
	for _, n := range got {
		sum += n
	}
	if sum != pending {
		t.Errorf("%d events were taken, %d pending", sum, pending)
	}
	for key, n := range want {
		// A key may be dropped while it is new, with its few events. The seed of the hashes differs in each run: with
		// shards of half this size, one run in 200 lost a tenth of a key.
		if kept := got["0"+key]; kept < n*9/10 {
			t.Errorf("%s has %d of %d events (seed %d)", key, kept, n, seed)
		}
	}
	counts.add(0, string(make([]byte, most)), 7, 0, false)
	if _, pending, lost := counts.sums(); pending != 0 || lost != dropped+7 {
		t.Errorf("a key larger than a shard: %d pending, %d dropped", pending, lost-dropped)
	}
}

// Half of the records are dropped, those with the lowest counts.
func TestTallyBatchShrinks(t *testing.T) {
	b := newTallyBatch(1)
	for i := range 100 {
		b.records[b.insert(0, fmt.Sprint("key-", i), 0)].n = uint64(i%10) + 1
	}
	before := b.bytes
	lost := b.shrink()
	sum, low := uint64(0), 0
	for i, r := range b.records {
		if j, ok := b.index[0][r.key]; !ok || j != i {
			t.Fatalf("%q is not found", r.key)
		}
		if sum += r.n; r.n < 6 {
			low++
		}
	}
	if len(b.records) != 50 || len(b.index[0]) != 50 || sum+lost != 550 || low != 0 || b.bytes > before*51/100 {
		t.Errorf("%d records with %d events in %d bytes are left, %d of them low; %d are lost", len(b.records), sum, b.bytes, low, lost)
	}
}

// The first count that is high is urgent, once until it is taken, unless the key is hot.
func TestTallyIsUrgent(t *testing.T) {
	calls := 0
	counts := newTally(4<<20, []uint64{10}, func() { calls++ })
	counts.add(0, "a", 100, 0, true)
	counts.add(0, "b", 9, 0, false)
	if calls != 0 {
		t.Errorf("%d calls for a hot key and a low count", calls)
	}
	counts.add(0, "b", 1, 0, false)
	counts.add(0, "b", 1, 0, false)
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
	takeAll(counts, map[string]uint64{})
	counts.add(0, "b", 10, 0, false)
	if calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

// Adds allocate for new keys only: one string each, and one list when they are taken.
func TestTallyAllocatesForNewKeys(t *testing.T) {
	counts := newTally(4<<20, neverUrgent(1), nil)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("/product/", i)
	}
	round := func() {
		for _, k := range keys {
			counts.add(0, k, 1, 1, false)
			counts.add(0, k, 1, 1, false)
		}
		counts.take(func(tallyRecord) {})
	}
	for range 4 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n < 1000 || n > 1050 {
		t.Errorf("%v allocations for %d keys", n, len(keys))
	}
}

func BenchmarkTallyAdd(b *testing.B) {
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprint("/product/", i)
	}
	for _, n := range []int{1, len(keys)} {
		b.Run(fmt.Sprint("keys=", n), func(b *testing.B) {
			counts := newTally(4<<20, neverUrgent(1), nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				counts.add(0, keys[i&(n-1)], 1, 1, false)
			}
		})
		b.Run(fmt.Sprint("parallel/keys=", n), func(b *testing.B) {
			counts := newTally(4<<20, neverUrgent(1), nil)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(1024); pb.Next(); i++ {
					counts.add(0, keys[i&(n-1)], 1, 1, false)
				}
			})
		})
	}
	b.Run("new", func(b *testing.B) {
		counts := newTally(4<<20, neverUrgent(1), nil)
		key := []byte("/product/00000000")
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for j, x := len(key)-1, i; j > 9; j, x = j-1, x/10 {
				key[j] = '0' + byte(x%10)
			}
			counts.add(0, string(key), 1, 1, false)
		}
	})
}

// Keys with more events are taken first, whenever they were counted.
func TestTakeHottestFirst(t *testing.T) {
	counts := newTally(1<<20, []uint64{math.MaxUint64}, nil)
	want := uint64(0)
	for i := range 5000 {
		n := uint64(1)
		if i%7 == 0 {
			n = uint64(i)%1000 + 1
		}
		counts.add(0, fmt.Sprint("key-", i), n, 1, false)
		want += n
	}
	last, sum, records := uint64(math.MaxUint64), uint64(0), 0
	counts.take(func(r tallyRecord) {
		if r.n > last {
			t.Errorf("record %d has %d events, the previous one %d", records, r.n, last)
		}
		last = r.n
		sum += r.n
		records++
	})
	if sum != want || records != 5000 {
		t.Errorf("%d events in %d records, want %d in 5000", sum, records, want)
	}
	counts.take(func(r tallyRecord) { t.Errorf("%+v is taken twice", r) })
}
