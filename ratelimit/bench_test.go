package ratelimit_test

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// zipf returns n keys in the order of a Zipf distribution with exponent 1: the k-th most frequent key is drawn k times less
// often than the first. It uses inversion: the rank is keys to the power of a uniform number.
func zipf(keys, n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := make([]string, keys)
	for i := range names {
		names[i] = "client-" + strconv.Itoa(i)
	}
	rnd.Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
	drawn := make([]string, n)
	for i := range drawn {
		drawn[i] = names[min(int(math.Pow(float64(keys), rnd.Float64())), keys)-1]
	}
	return drawn
}

// benchKeys is how many different keys the benchmarks have.
var benchKeys = []int{1, 10_000, 1_000_000}

// drawn is how many keys are drawn in advance, a power of two.
const drawn = 1 << 21

// draw returns the drawn keys, which all benchmarks of that many share.
func draw(keys int) []string { return draws[keys]() }

var draws = func() map[int]func() []string {
	m := make(map[int]func() []string)
	for _, keys := range benchKeys {
		m[keys] = sync.OnceValue(func() []string { return zipf(keys, drawn) })
	}
	return m
}()

// inParallel runs take for the drawn keys; each goroutine starts at another place. With -cpu 1 it is a plain loop.
func inParallel(b *testing.B, keys []string, take func(key string)) {
	for _, key := range keys {
		take(key) // every key has its record
	}
	var starts atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := starts.Add(1) * 1_234_567
		for pb.Next() {
			take(keys[i&(drawn-1)])
			i++
		}
	})
}

// BenchmarkFloor is what any keyed counter has to pay: one atomic add, and a
// hash with a look-up in a map under a lock.
func BenchmarkFloor(b *testing.B) {
	b.Run("atomic-add", func(b *testing.B) {
		var n atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	for _, keys := range benchKeys {
		b.Run(fmt.Sprintf("hash+map/keys=%d", keys), func(b *testing.B) {
			const shards = 64
			var tables [shards]struct {
				sync.Mutex
				counts map[string]*uint64
				_      [40]byte
			}
			for i := range tables {
				tables[i].counts = make(map[string]*uint64)
			}
			seed := maphash.MakeSeed()
			inParallel(b, draw(keys), func(key string) {
				s := &tables[maphash.String(seed, key)%shards]
				s.Lock()
				n := s.counts[key]
				if n == nil {
					n = new(uint64)
					s.counts[key] = n
				}
				*n++
				s.Unlock()
			})
		})
	}
}

// BenchmarkRuleTake takes live under one limit, with few refusals for most keys
// and many for the most frequent ones.
func BenchmarkRuleTake(b *testing.B) {
	for _, c := range []struct {
		name string
		a    ratelimit.Algorithm
		n    uint64
	}{
		{"exact/N=60", ratelimit.Exact, 60},
		{"sliding/N=60", ratelimit.Sliding, 60},
		{"exact/N=1000", ratelimit.Exact, 1000},
		{"sliding/N=1000", ratelimit.Sliding, 1000},
	} {
		for _, keys := range benchKeys {
			b.Run(fmt.Sprintf("%s/keys=%d", c.name, keys), func(b *testing.B) {
				r := limitRule(b, "r", per(c.n, time.Minute))
				r.Algorithm = c.a
				l := mustLimiter(b, mustSet(b, r), ratelimit.Config{})
				one := mustRule(l, "r")
				inParallel(b, draw(keys), func(key string) { one.Take(key) })
			})
		}
	}
}

// BenchmarkTake takes an event of a client under one limit, and under a limit with a ban, where the key must be built
// first.
func BenchmarkTake(b *testing.B) {
	banned := limitRule(b, "ban", per(60, time.Minute))
	banned.Ban = &ratelimit.Ban{After: 600, Span: time.Minute, For: time.Minute}
	for _, r := range []ratelimit.Rule{limitRule(b, "limit", per(60, time.Minute)), banned} {
		b.Run(r.Name, func(b *testing.B) {
			l := mustLimiter(b, mustSet(b, r), ratelimit.Config{})
			events := sync.Pool{New: func() any { return new(match.Event) }}
			inParallel(b, draw(1_000_000), func(key string) {
				e := events.Get().(*match.Event)
				e.SetString(match.Client, key)
				l.Take(e)
				events.Put(e)
			})
		})
	}
}
