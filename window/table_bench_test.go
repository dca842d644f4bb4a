package window

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// Keyed rows are read as a ratio to the performance floor of the same size in the same run: hash the key and add one to a
// word at that place. LATELY_LONG=1 has up to 10 M keys.
//
//	go test -run '^$' -bench Keyed -cpu 1,2

// keyedDraws returns keys drawn as Zipf with exponent 1.1, or uniformly.
func keyedDraws(zipf bool, keys int) []uint32 {
	rnd := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(rnd, 1.1, 1, uint64(keys-1))
	draws := make([]uint32, 1<<20)
	for i := range draws {
		if zipf {
			draws[i] = uint32(z.Uint64() * 2654435761 % uint64(keys))
		} else {
			draws[i] = rnd.Uint32N(uint32(keys))
		}
	}
	return draws
}

// benchKey builds a key of 11 bytes as a request would, in a buffer in the
// cache.
func benchKey(buf []byte, i uint32) []byte {
	return strconv.AppendUint(append(buf[:0], "u:"...), uint64(i)+100_000_000, 10)
}

// A keyedRow is a row of the benchmark: do is called with each key.
type keyedRow struct {
	name string
	do   func(key []byte)
}

var (
	benchPair = Window{Span: time.Minute, Slot: time.Minute}
	bench10   = Window{Span: time.Minute, Slot: 6 * time.Second}
)

func keyedFloor(keys int) keyedRow {
	size := uint64(1)
	for size < uint64(keys)*2 {
		size *= 2
	}
	words, seed := make([]uint64, size), maphash.MakeSeed()
	return keyedRow{"floor", func(key []byte) {
		atomic.AddUint64(&words[maphash.Bytes(seed, key)&(size-1)], 1)
	}}
}

func keyedTable(tb testing.TB, keys int, c TableConfig, windows ...Window) *Table {
	c.Budget = max(int64(keys)*128*int64(len(windows)), 1<<20)
	if windows[0].Slots() > 10 {
		c.Budget *= 3
	}
	table := mustTable(tb, c, windows...)
	buf := make([]byte, 0, 128) // no cache line of it is another goroutine's
	for i := range keys {
		table.Add(string(benchKey(buf, uint32(i))), 1)
	}
	if s := table.Stats(); s.Keys != keys {
		tb.Fatalf("%+v", s)
	}
	return table
}

func keyedRows(tb testing.TB, keys int) []keyedRow {
	pair := keyedTable(tb, keys, TableConfig{}, benchPair)
	ten := keyedTable(tb, keys, TableConfig{}, bench10)
	at := time.Now()
	return []keyedRow{
		keyedFloor(keys),
		{"pair", func(key []byte) { pair.Add(string(key), 1) }},
		{"pairAt", func(key []byte) { pair.AddAt(at, string(key), 1) }},
		{"10slots", func(key []byte) { ten.Add(string(key), 1) }},
		{"10slotsAt", func(key []byte) { ten.AddAt(at, string(key), 1) }},
	}
}

func keyedSizes() []int {
	if os.Getenv("LATELY_LONG") != "" {
		return []int{10_000, 100_000, 1_000_000, 10_000_000}
	}
	return []int{10_000, 1_000_000}
}

func dist(zipf bool) string {
	if zipf {
		return "zipf"
	}
	return "uniform"
}

func BenchmarkKeyed(b *testing.B) {
	for _, keys := range keyedSizes() {
		rows := keyedRows(b, keys)
		for _, window := range []Window{Last(time.Minute)} {
			sixty := keyedTable(b, keys, TableConfig{}, window)
			rows = append(rows,
				keyedRow{"60slots", func(key []byte) { sixty.Add(string(key), 1) }},
				keyedRow{"60slots/AddSum", func(key []byte) { sixty.AddSum(string(key), 1) }},
				keyedRow{"60slots/Sum", func(key []byte) { sixty.Sum(string(key)) }})
		}
		for _, zipf := range []bool{true, false} {
			draws := keyedDraws(zipf, keys)
			for _, row := range rows {
				b.Run(fmt.Sprintf("%s/%s/keys=%d", row.name, dist(zipf), keys), func(b *testing.B) {
					var starts atomic.Uint32
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						buf := make([]byte, 0, 128) // no cache line of it is another goroutine's
						i := starts.Add(1) * 333_333
						for pb.Next() {
							i++
							row.do(benchKey(buf, draws[i%uint32(len(draws))]))
						}
					})
				})
			}
		}
	}
}

// New keys: while the table grows, and at the budget, where each pushes another
// one out.
func BenchmarkTableNewKey(b *testing.B) {
	for name, budget := range map[string]int64{"growing": 4 << 30, "forgetting": 8 << 20} {
		b.Run(name, func(b *testing.B) {
			tb := mustTable(b, TableConfig{Budget: budget}, bench10)
			buf, i := make([]byte, 0, 32), uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				i++
				tb.Add(string(benchKey(buf, i)), 1)
			}
		})
	}
}

func BenchmarkTableTop(b *testing.B) {
	const keys = 1_000_000
	tb := keyedTable(b, keys, TableConfig{}, bench10)
	for b.Loop() {
		must.Get(tb.Top(10, time.Minute))(b)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/keys, "ns/key")
}

// TestTableFigures prints what docs/dev/proofs.md states of large tables: the
// longest adds while ten million keys come, and what the collector has to do.
func TestTableFigures(t *testing.T) {
	if os.Getenv("LATELY_LONG") == "" {
		t.Skip("LATELY_LONG=1 adds ten million keys")
	}
	const keys = 10_000_000
	tb := mustTable(t, TableConfig{Budget: 1 << 30}, bench10)
	buf := make([]byte, 0, 128) // no cache line of it is another goroutine's
	longest := make([]time.Duration, 0, 1000)
	start := time.Now()
	last := start
	for i := range uint32(keys) {
		tb.Add(string(benchKey(buf, i)), 1)
		now := time.Now()
		if took := now.Sub(last); took > 50*time.Microsecond {
			longest = append(longest, took)
		}
		last = now
		if i == 999_999 || i == keys-1 {
			slices.Sort(longest)
			n := len(longest)
			s := tb.Stats()
			t.Logf("%d keys in %v; adds over 50 µs: %d, the longest: %v; %.1f bytes a key; full GC %v",
				i+1, time.Since(start), n, longest[max(n-5, 0):], float64(s.Bytes)/float64(s.Keys), fullGC())
			last = time.Now()
		}
	}
}

// fullGC returns the best of some collections.
func fullGC() time.Duration {
	best := time.Hour
	for range 7 {
		start := time.Now()
		runtime.GC()
		best = min(best, time.Since(start))
	}
	return best
}
