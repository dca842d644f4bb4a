package keytable_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/keytable"
)

// seeded returns a generator whose seed is printed when the test fails.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// randomKey returns a key that is likely to be like another: empty, a prefix
// of others, or alike but for a byte.
func randomKey(rnd *rand.Rand) string {
	switch rnd.IntN(10) {
	case 0:
		return string(bytes.Repeat([]byte{0}, rnd.IntN(40)))
	case 1:
		return string(bytes.Repeat([]byte{'a'}, rnd.IntN(300)))
	case 2:
		return "a common prefix, long enough to be tedious: " + fmt.Sprint(rnd.IntN(3000))
	case 3:
		return fmt.Sprint(rnd.IntN(3000)) + " and a common end, just as tedious"
	}
	b := make([]byte, 1+rnd.IntN(3))
	for i := range b {
		b[i] = byte(rnd.IntN(256))
	}
	return string(b)
}

// TestShardedAgainstMap does random things to a Table and to a map. A record, once
// added, must be found at the same place with what was last written to it.
func TestShardedAgainstMap(t *testing.T) {
	rnd := seeded(t)
	for _, c := range []keytable.ShardedConfig{{}, {Words: 3, Shards: 1}, {Words: 40, Shards: 8}, {Words: 5000, Shards: 2}, {Words: 4, Shards: 5, Logs: []int{3}}} {
		words := max(c.Words, 1)
		table := keytable.NewSharded(maphash.MakeSeed(), c)
		want := make(map[string][]uint64)
		place := make(map[string]*uint64)
		steps := 20_000
		if words > 1000 {
			steps = 500
		}
		for range steps {
			key := randomKey(rnd)
			checkKey(t, table, key, want[key], place[key])
			if rnd.IntN(3) == 0 {
				continue
			}
			hash := table.Hash([]byte(key))
			s := table.Shard(hash)
			s.Lock()
			rec := s.FindOrAdd(hash, []byte(key))
			if want[key] == nil {
				want[key], place[key] = make([]uint64, words), &rec[0]
				if len(rec) != words || !slices.Equal(rec, want[key]) {
					t.Fatalf("%+v: the new record of %q is %v", c, key, rec)
				}
			}
			i := rnd.IntN(words)
			rec[i] = rnd.Uint64()
			want[key][i] = rec[i]
			s.Unlock()
		}
		for key := range want {
			checkKey(t, table, key, want[key], place[key])
		}
		checkAll(t, table, want)
	}
}

func checkKey(t *testing.T, table *keytable.Sharded, key string, want []uint64, place *uint64) {
	t.Helper()
	hash := table.Hash([]byte(key))
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	rec := s.Find(hash, []byte(key))
	switch {
	case want == nil && rec != nil:
		t.Fatalf("found %q, which was never added", key)
	case !slices.Equal(rec, want):
		t.Fatalf("the record of %q is %v, want %v", key, rec, want)
	case want != nil && &rec[0] != place:
		t.Fatalf("the record of %q has moved", key)
	}
}

func checkAll(t *testing.T, table *keytable.Sharded, want map[string][]uint64) {
	t.Helper()
	if table.Len() != len(want) {
		t.Errorf("Len is %d, want %d", table.Len(), len(want))
	}
	seen := make(map[string]bool)
	for key, rec := range table.All() {
		if seen[string(key)] {
			t.Errorf("All yields %q twice", key)
		}
		seen[string(key)] = true
		if !slices.Equal(rec, want[string(key)]) {
			t.Errorf("All has %q with %v, want %v", key, rec, want[string(key)])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("All yields %d keys, want %d", len(seen), len(want))
	}
	for range table.All() {
		break // a loop left early must not keep a shard locked
	}
	table.Len()
}

func add(table *keytable.Sharded, key []byte) []uint64 {
	hash := table.Hash(key)
	s := table.Shard(hash)
	s.Lock()
	defer s.Unlock()
	return s.FindOrAdd(hash, key)
}

// TestLongKeys adds keys up to MaxKey, alike but for one byte, among short ones.
func TestLongKeys(t *testing.T) {
	table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Shards: 1})
	key := func(n int, b byte) []byte {
		k := bytes.Repeat([]byte{'x'}, n)
		if n > 0 {
			k[n-1] = b
		}
		return k
	}
	lengths := []int{0, 1, 1 << 13, 16<<10 - 1, 16 << 10, 16<<10 + 1, 1<<20 - 2, keytable.MaxShardedKey}
	want := make(map[string][]uint64)
	for i, n := range lengths {
		for _, b := range []byte{1, 2} {
			k := key(n, b)
			v := uint64(10*i + int(b))
			add(table, k)[0] = v
			want[string(k)] = []uint64{v}
			clear(k) // the table has a copy
			short := fmt.Append(nil, "short", i, b)
			add(table, short)[0] = v
			want[string(short)] = []uint64{v}
		}
	}
	checkAll(t, table, want)
	for k, v := range want {
		if rec := add(table, []byte(k)); !slices.Equal(rec, v) {
			t.Errorf("a key of %d bytes has %v, want %v", len(k), rec, v)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a key of MaxKey+1 bytes was taken")
		}
	}()
	table.Shard(0).FindOrAdd(0, make([]byte, keytable.MaxShardedKey+1))
}

// TestShardedConcurrently has goroutines count the same keys: none may be lost or
// doubled, and each key must have one record.
func TestShardedConcurrently(t *testing.T) {
	rnd := seeded(t)
	table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Words: 1, Shards: 4})
	const goroutines, each, keys = 8, 20_000, 3000
	var wg sync.WaitGroup
	for range goroutines {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wg.Go(func() {
			key := make([]byte, 0, 20)
			for range each {
				key = fmt.Appendf(key[:0], "key-%d", mine.IntN(keys))
				hash := table.Hash(key)
				s := table.Shard(hash)
				s.Lock()
				s.FindOrAdd(hash, key)[0]++
				s.Unlock()
			}
		})
	}
	wg.Wait()
	sum := uint64(0)
	for _, rec := range table.All() {
		sum += rec[0]
	}
	if sum != goroutines*each || table.Len() > keys {
		t.Errorf("%d counted in %d keys, want %d in at most %d", sum, table.Len(), goroutines*each, keys)
	}
}

// TestOneHashForManyKeys hands in one hash for different keys, as if they
// collided in all of it: each must keep a record of its own.
func TestOneHashForManyKeys(t *testing.T) {
	table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Shards: 1})
	s := table.Shard(0)
	const keys = 500
	for round := range uint64(2) {
		for i := range uint64(keys) {
			hash := uint64(42) + i%3<<32 // some differ in what the index keeps
			rec := s.FindOrAdd(hash, fmt.Append(nil, i))
			if rec[0] != round*i {
				t.Fatalf("round %d: key %d has %d, want %d", round, i, rec[0], round*i)
			}
			rec[0] = i
		}
	}
	if table.Len() != keys {
		t.Errorf("%d keys, want %d", table.Len(), keys)
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Words: 2})
	key := []byte("a key")
	add(table, key)
	if n := testing.AllocsPerRun(100, func() { add(table, key)[0]++ }); n != 0 {
		t.Errorf("%v allocations for a key that is there", n)
	}
}

// TestBytesPerKey holds the doc comment of Table to what a million keys take.
func TestBytesPerKey(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("three million keys, and the race detector takes memory of its own")
	}
	const keys, length = 1_000_000, 16
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, words := range []int{1, 6, 35} {
		before := heap()
		table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{Words: words})
		key := make([]byte, length)
		for i := range keys {
			binary.BigEndian.PutUint64(key[length-8:], uint64(i))
			add(table, key)
		}
		perKey := float64(heap()-before) / keys
		runtime.KeepAlive(table)
		t.Logf("%d words: %.1f bytes a key, %d of them the key itself", words, perKey, length)
		least, most := float64(16+8*words+length+10), float64(16+8*words+length+22)
		if perKey < least || perKey > most*1.05 {
			t.Errorf("%d words: %.1f bytes a key, documented are %v to %v", words, perKey, least, most)
		}
	}
}

// collidingKeys returns n keys that FNV-1a, unseeded, gives the same lower 32
// bits: whatever the size of a table, they'd share a place in it. Two blocks
// that lead from one state to the same next one are found for each of a row of
// states; any choice of blocks then ends in one state (A. Joux, Multicollisions
// in Iterated Hash Functions, 2004).
func collidingKeys(rnd *rand.Rand, n int) [][]byte {
	step := func(state uint32, block []byte) uint32 {
		for _, b := range block {
			state = (state ^ uint32(b)) * 0x1b3
		}
		return state
	}
	h := fnv.New64a()
	state := uint32(h.Sum64())
	var pairs [][2][]byte
	for 1<<len(pairs) < n {
		from := make(map[uint32][]byte)
		for {
			block := binary.LittleEndian.AppendUint64(nil, rnd.Uint64())
			next := step(state, block)
			if other, ok := from[next]; ok {
				pairs = append(pairs, [2][]byte{other, block})
				state = next
				break
			}
			from[next] = block
		}
	}
	keys := make([][]byte, n)
	for i := range keys {
		for bit, pair := range pairs {
			keys[i] = append(keys[i], pair[i>>bit&1]...)
		}
	}
	return keys
}

// TestCraftedKeysAreNoSlower adds keys that were built to collide under an
// unseeded hash. Under the seeded one they must cost what any keys cost.
func TestCraftedKeysAreNoSlower(t *testing.T) {
	rnd := seeded(t)
	const n = 100_000
	crafted := collidingKeys(rnd, n)
	hashes := make(map[uint32]bool)
	random := make([][]byte, n)
	for i, key := range crafted {
		h := fnv.New64a()
		h.Write(key)
		hashes[uint32(h.Sum64())] = true
		random[i] = make([]byte, len(key))
		for j := range random[i] {
			random[i][j] = byte(rnd.Uint32())
		}
	}
	if len(hashes) != 1 {
		t.Fatalf("the crafted keys have %d hashes; the test has no teeth", len(hashes))
	}
	mean := func(keys [][]byte) float64 {
		table := keytable.NewSharded(maphash.MakeSeed(), keytable.ShardedConfig{})
		for _, key := range keys {
			add(table, key)
		}
		if table.Len() != n {
			t.Fatalf("%d keys, want %d", table.Len(), n)
		}
		total := 0
		for _, key := range keys {
			total += table.Probes(key)
		}
		return float64(total) / n
	}
	got, want := mean(crafted), mean(random)
	t.Logf("%.2f probes for a crafted key, %.2f for a random one", got, want)
	if got > 1.3*want {
		t.Errorf("%.2f probes for a crafted key, %.2f for a random one", got, want)
	}
}
