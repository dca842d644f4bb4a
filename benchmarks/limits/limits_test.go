package limits

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/benchmarks/drive"
	"github.com/lately-go/lately/benchmarks/keys"
)

var (
	mainKeys   = flag.Int("keys", 1_000_000, "how many keys all rows are measured with")
	seriesKeys = flag.String("series", "10000,100000", "how many keys most rows are measured with, too")
	fullKeys   = flag.Int("full", 50_000, "how many keys have used up their limit when a key is weighed")
)

// All rows with one number of keys, one goroutine for each core: op=fill measures an insertion, a key and a garbage
// collection, op=zipf and op=uniform a decision. All use one limiter, which refuses more with every sample.
func BenchmarkTake(b *testing.B) {
	for _, s := range subjects() {
		if s.most == 0 || s.most >= *mainKeys {
			b.Run("subject="+s.name, func(b *testing.B) { ops(b, s, *mainKeys) })
		}
	}
}

// Most rows with fewer keys.
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

func ops(b *testing.B, s subject, n int) {
	f := fill(s, n, s.limit)
	defer f.release()
	b.Run("op=fill", f.report)
	for _, dist := range []string{"zipf", "uniform"} {
		b.Run("op="+dist, func(b *testing.B) { f.run(b, keys.Sequence(dist, n)) })
	}
}

// Zipf events at the caller's time, as many a minute as there are keys, one goroutine: windows slide during the
// measurement, as in a live service; in the other rows, which take seconds, they do not.
func BenchmarkTraffic(b *testing.B) {
	n := *mainKeys
	for _, s := range subjects() {
		l, ok := s.make(0, max(s.limit, 1)).(rateLimiter)
		if !ok || s.most > 0 && s.most < n {
			continue
		}
		t := &traffic{l: l, k: keys.NewBuilder(n), seq: keys.Sequence("zipf", n), now: time.Now(), apart: time.Minute / time.Duration(n)}
		b.Run("subject="+s.name, func(b *testing.B) {
			if t.pos == 0 {
				t.take(n + n/4) // more than a minute, in which the windows fill
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.ReportMetric(100*float64(t.take(b.N))/float64(b.N), "refused-%")
		})
	}
}

// traffic is events at equal distances.
type traffic struct {
	l     rateLimiter
	k     *keys.Builder
	seq   []uint32
	pos   int
	now   time.Time
	apart time.Duration
}

func (t *traffic) take(events int) (refused int) {
	for range events {
		t.now = t.now.Add(t.apart)
		if !t.l.TakeAt(t.now, t.k.Key(t.seq[t.pos%keys.Draws])) {
			refused++
		}
		t.pos++
	}
	return refused
}

// One key: all is allowed, or all is refused because its limit is used up.
func BenchmarkOneKey(b *testing.B) {
	one := make([]uint32, keys.Draws)
	for _, s := range subjects() {
		b.Run("subject="+s.name, func(b *testing.B) {
			// One limit is enough where plenty takes the place of both.
			if s.limit == 0 || s.limit == usual {
				f := fill(s, 1, plenty)
				b.Run("op=allowed", func(b *testing.B) { f.run(b, one) })
				f.release()
			}
			if s.limit > 0 {
				f := fill(s, 1, s.limit)
				f.useUp(s.limit)
				b.Run("op=refused", func(b *testing.B) { f.run(b, one) })
				f.release()
			}
		})
	}
}

// One key with the caller's time, at 95 % of its limit: all is allowed, and for each new event another leaves.
func BenchmarkPaced(b *testing.B) {
	for _, s := range subjects() {
		l, ok := s.make(1, max(s.limit, 1)).(rateLimiter)
		if !ok {
			continue
		}
		now, apart := time.Now(), s.span/time.Duration(s.limit)*20/19
		for range s.limit {
			now = now.Add(apart)
			l.TakeAt(now, "user:123456")
		}
		b.Run("subject="+s.name, func(b *testing.B) {
			refused := 0
			for b.Loop() {
				now = now.Add(apart)
				if !l.TakeAt(now, "user:123456") {
					refused++
				}
			}
			b.ReportMetric(100*float64(refused)/float64(b.N), "refused-%")
		})
	}
}

// The weight of a key that has used up its limit of sixty, or one for which the default does not keep all times.
func BenchmarkFull(b *testing.B) {
	for _, s := range subjects() {
		if s.limit != 60 && s.name != "ratelimit,sliding,1000-a-minute" {
			continue
		}
		b.Run("subject="+s.name, func(b *testing.B) {
			var f *filled
			_, heap := drive.Weigh(func() *filled {
				f = fill(s, *fullKeys, s.limit)
				f.useUp(s.limit)
				return f
			})
			f.release()
			for b.Loop() { // nothing is timed
			}
			b.ReportMetric(float64(heap.Bytes)/float64(*fullKeys), "B/key")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// filled is a limiter with its keys, and the measurements of filling it.
type filled struct {
	n      int
	l      limiter
	heap   drive.Heap
	insert time.Duration
	gc     time.Duration
	own    []string // for a limiter that may keep each string it is given
	drawn  int      // where in its sequence the next sample begins
	warm   int      // how many events come before the timing
}

// fill makes a limiter and takes each key once, in order. Where the limiter
// keeps strings it gets each key as one of its own, made on the clock.
func fill(s subject, n int, limit uint64) *filled {
	f := &filled{n: n, warm: warm}
	if s.limit == 0 {
		f.warm = warmFloor
	}
	f.l, f.heap = drive.Weigh(func() limiter {
		l := s.make(n, limit)
		k := keys.NewBuilder(n)
		began := time.Now()
		for id := range uint32(n) {
			if s.keys == copies {
				l.Take(k.Key(id))
			} else {
				l.Take(strings.Clone(k.Key(id)))
			}
		}
		f.insert = time.Since(began)
		return l
	})
	f.gc = drive.GC()
	if s.keys == keepsEach {
		f.own = keys.All(n)
	}
	return f
}

// useUp takes a number of events for each key.
func (f *filled) useUp(limit uint64) {
	k := keys.NewBuilder(f.n)
	for id := range uint32(f.n) {
		key := k.Key(id)
		if f.own != nil {
			key = f.own[id]
		}
		for range limit {
			f.l.Take(key)
		}
	}
}

// release ends what the limiter has going.
func (f *filled) release() {
	if c, ok := f.l.(interface{ Close() }); ok {
		c.Close()
	}
	f.l, f.own = nil, nil
}

func (f *filled) report(b *testing.B) {
	n := float64(f.n)
	b.ReportMetric(float64(f.insert.Nanoseconds())/n, "insert-ns/key")
	b.ReportMetric(float64(f.heap.Bytes)/n, "B/key")
	b.ReportMetric(float64(f.heap.Objects)/n, "objects/key")
	b.ReportMetric(float64(f.gc.Microseconds())/1000, "gc-ms")
	b.ReportMetric(0, "ns/op")
}

// How many events each goroutine takes before the timing: short samples would otherwise measure caches that fill and cores
// that wake up. Floors have no limit to use up, and their samples are the shortest.
const (
	warm      = 20_000
	warmFloor = 2_000_000
)

// run takes events, a goroutine for each core, each from its own place in the sequence; a sample goes on where the previous
// one ended.
func (f *filled) run(b *testing.B, seq []uint32) {
	goroutines := runtime.GOMAXPROCS(0)
	var refused atomic.Int64
	drive.Parallel(b, goroutines, func(i int) func(int) {
		take := f.taker(seq, f.drawn+i*(keys.Draws/goroutines))
		if b.N > warm { // not in the trial of a single event
			take(f.warm)
		}
		return func(n int) { refused.Add(take(n)) }
	})
	f.drawn += f.warm + b.N
	b.ReportMetric(100*float64(refused.Load())/float64(b.N), "refused-%")
	runtime.KeepAlive(f)
}

// taker returns what takes the next n events from pos on and returns how many
// were refused.
func (f *filled) taker(seq []uint32, pos int) func(n int) int64 {
	k := keys.NewBuilder(f.n)
	return func(n int) (refused int64) {
		for range n {
			id := seq[pos%keys.Draws]
			pos++
			var key string
			if f.own != nil {
				key = f.own[id]
			} else {
				key = k.Key(id)
			}
			if !f.l.Take(key) {
				refused++
			}
		}
		return refused
	}
}
