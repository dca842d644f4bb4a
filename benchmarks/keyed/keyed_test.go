package keyed

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/benchmarks/drive"
	"github.com/lately-go/lately/benchmarks/keys"
)

var (
	mainKeys   = flag.Int("keys", 1_000_000, "how many keys all rows are measured with")
	seriesKeys = flag.String("series", "10000,100000,1000000,10000000", "how many keys a few rows are measured with")
)

// All rows with one number of keys, one goroutine for each core: op=fill measures an insertion, a key and a garbage
// collection, op=zipf and op=uniform an event.
func BenchmarkTable(b *testing.B) {
	for _, s := range subjects() {
		b.Run("subject="+s.name, func(b *testing.B) { ops(b, s, *mainKeys) })
	}
}

// A few rows with fewer keys and with more.
func BenchmarkKeys(b *testing.B) {
	for text := range strings.SplitSeq(*seriesKeys, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil || n <= 0 {
			b.Fatalf("-series %q: %q must be a positive number", *seriesKeys, text)
		}
		for _, s := range subjects() {
			if s.series {
				b.Run(fmt.Sprintf("keys=%d/subject=%s", n, s.name), func(b *testing.B) { ops(b, s, n) })
			}
		}
	}
}

// A few rows with one to sixteen goroutines on all cores, Zipf.
func BenchmarkGoroutines(b *testing.B) {
	for _, s := range subjects() {
		if !s.series {
			continue
		}
		b.Run("subject="+s.name, func(b *testing.B) {
			f := fill(s, *mainKeys)
			defer f.release()
			for _, goroutines := range []int{1, 2, 4, 8, 16} {
				b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
					f.run(b, goroutines, keys.Sequence("zipf", *mainKeys))
				})
			}
		})
	}
}

func ops(b *testing.B, s subject, n int) {
	f := fill(s, n)
	defer f.release()
	b.Run("op=fill", f.report)
	for _, dist := range []string{"zipf", "uniform"} {
		b.Run("op="+dist, func(b *testing.B) { f.run(b, runtime.GOMAXPROCS(0), keys.Sequence(dist, n)) })
	}
}

// filled is a table with its keys, and the measurements of filling it.
type filled struct {
	n      int
	t      table
	heap   drive.Heap
	insert time.Duration
	gc     time.Duration
	own    []string // for a table that may keep each string it is given
}

// fill makes a table and adds each key once, in order. Where the table keeps
// strings it gets each key as one of its own, made on the clock.
func fill(s subject, n int) *filled {
	f := &filled{n: n}
	f.t, f.heap = drive.Weigh(func() table {
		t := s.make(n)
		k := keys.NewBuilder(n)
		began := time.Now()
		for id := range uint32(n) {
			if s.keys == copies {
				t.Add(k.Key(id))
			} else {
				t.Add(strings.Clone(k.Key(id)))
			}
		}
		f.insert = time.Since(began)
		return t
	})
	f.gc = drive.GC()
	if s.keys == keepsEach {
		f.own = keys.All(n)
	}
	return f
}

// release ends what the table has going.
func (f *filled) release() {
	if c, ok := f.t.(interface{ Close() }); ok {
		c.Close()
	}
	f.t, f.own = nil, nil
}

func (f *filled) report(b *testing.B) {
	n := float64(f.n)
	b.ReportMetric(float64(f.insert.Nanoseconds())/n, "insert-ns/key")
	b.ReportMetric(float64(f.heap.Bytes)/n, "B/key")
	b.ReportMetric(float64(f.heap.Objects)/n, "objects/key")
	b.ReportMetric(float64(f.gc.Microseconds())/1000, "gc-ms")
	b.ReportMetric(0, "ns/op")
}

// run adds events, each goroutine from its own place in the sequence.
func (f *filled) run(b *testing.B, goroutines int, seq []uint32) {
	drive.Parallel(b, goroutines, func(i int) func(int) {
		pos := i * (keys.Draws / goroutines)
		if f.own != nil {
			return func(n int) {
				at := pos // pos of two goroutines may share a cache line
				for range n {
					f.t.Add(f.own[seq[at%keys.Draws]])
					at++
				}
				pos = at
			}
		}
		k := keys.NewBuilder(f.n)
		return func(n int) {
			at := pos
			for range n {
				f.t.Add(k.Key(seq[at%keys.Draws]))
				at++
			}
			pos = at
		}
	})
	runtime.KeepAlive(f)
}
