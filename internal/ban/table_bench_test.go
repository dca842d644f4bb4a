package ban

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// benchKey is a key of 12 bytes, and hash a hash of it that costs next to nothing: the benchmarks are about the work after
// the hash.
func benchKey(key []byte, i uint64) (hash uint64) {
	binary.LittleEndian.PutUint64(key, i)
	return fold128(i^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
}

func benchBans(b *testing.B, n int) *Table {
	table := NewTable(Config{Most: 2 * n})
	ban := &Policy{For: time.Hour, Span: time.Second}
	var key [12]byte
	for i := range uint64(n) {
		hash := benchKey(key[:], i)
		if _, ok := table.Start(0, hash, key[:], ban, 0, 0); !ok {
			b.Fatal("no memory")
		}
	}
	b.ResetTimer()
	return table
}

// benchHolds looks up n keys from first on, in random order.
func benchHolds(b *testing.B, table *Table, first uint64, n int, want bool) {
	var key [12]byte
	x, held := rand.Uint64(), 0
	ops := 0
	for b.Loop() {
		x = x*6364136223846793005 + 1442695040888963407
		i := first + (x>>32)*uint64(n)>>32
		if _, ok := table.Until(0, benchKey(key[:], i), key[:], 1); ok {
			held++
		}
		ops++
	}
	if want && held != ops || !want && held != 0 {
		b.Fatalf("%d of %d are banned", held, ops)
	}
}

// BenchmarkBanHolds looks up whether a key is banned, with none, 10 thousand and a million bans, beside the performance
// floor: making the key, its hash, and reading one random cache line in as many bytes as the index has.
func BenchmarkBanHolds(b *testing.B) {
	for _, n := range []int{0, 10_000, 1_000_000} {
		name := "/bans=" + strconv.Itoa(n)
		b.Run("floor"+name, func(b *testing.B) {
			lines := make([][8]atomic.Uint64, max(n/2, 1)) // 32 bytes a ban
			for i := range lines {
				lines[i][0].Store(1)
			}
			var key [12]byte
			x, sum := rand.Uint64(), uint64(0)
			b.ResetTimer()
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				hash := benchKey(key[:], x>>32)
				sum += lines[(hash>>32)*uint64(len(lines))>>32][0].Load()
			}
			if sum == 0 {
				b.Fatal("nothing was read")
			}
		})
		b.Run("miss"+name, func(b *testing.B) { benchHolds(b, benchBans(b, n), 1<<40, 1<<30, false) })
		if n > 0 {
			b.Run("hit"+name, func(b *testing.B) { benchHolds(b, benchBans(b, n), 0, n, true) })
		}
	}
}

// BenchmarkBanStart begins bans of new keys: until the table has n, and then without end, when all of them hold and when
// each of them has ended.
func BenchmarkBanStart(b *testing.B) {
	ban := &Policy{For: time.Hour, Span: time.Second}
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("fill/bans=%d", n), func(b *testing.B) {
			var key [12]byte
			for b.Loop() {
				table := newTable(Config{}, n, 0)
				for i := range uint64(n) {
					hash := benchKey(key[:], i)
					table.Start(0, hash, key[:], ban, 0, 0)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/ban")
		})
		for what, step := range map[string]int64{"full": 0, "over": 2 * int64(ban.For) / int64(n)} {
			b.Run(fmt.Sprintf("%s/bans=%d", what, n), func(b *testing.B) {
				now := step * int64(n)
				table := benchBans(b, n)
				table.shared.most = int64(n)
				var key [12]byte
				i := uint64(1 << 40)
				for b.Loop() {
					hash := benchKey(key[:], i)
					table.Start(0, hash, key[:], ban, now, 0)
					i++
					now += step
				}
			})
		}
	}
}
