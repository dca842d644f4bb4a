package sampled

import (
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/window"
)

func mustCounter(t testing.TB, p float64) *Counter {
	t.Helper()
	s := must.Get(New(window.Window{Span: 10 * time.Second, Slot: time.Second}, p))(t)
	return s
}

func TestNewErrors(t *testing.T) {
	for _, p := range []float64{0, -1, MinShare / 2, 1.0000001, math.NaN(), math.Inf(1)} {
		if s, err := New(window.Last(time.Minute), p); err == nil || s != nil || !strings.Contains(err.Error(), "must be from 1e-09 to 1") {
			t.Errorf("New(%v): %v, %v", p, s, err)
		}
	}
	if s, err := New(window.Window{}, 1); err == nil || s != nil || !strings.Contains(err.Error(), "window: span") {
		t.Errorf("NewSampled of a wrong window: %v, %v", s, err)
	}
}

// tally runs trials of n events each, from fixed seeds, and returns the spread of the estimates, in standard errors: the
// error of their mean, and its own standard deviation, which should be 1, and how often the 95 % interval contains the
// truth.
func tally(t *testing.T, p float64, n uint64, trials int, count func(trial int, s *Counter, n uint64)) (off, spread, held float64) {
	t.Helper()
	var sum, squares float64
	at := time.Unix(1000, 0)
	sigma := math.Sqrt(float64(n) * (1 - p) / p) // of an estimate
	for trial := range trials {
		s := mustCounter(t, p)
		count(trial, s, n)
		e := s.SumAt(at)
		x := (e.Count() - float64(n)) / sigma
		sum += x
		squares += x * x
		if lo, hi := e.Interval(1.96); lo <= float64(n) && float64(n) <= hi {
			held++
		}
	}
	m := float64(trials)
	mean := sum / m
	return mean * math.Sqrt(m), math.Sqrt(squares/m - mean*mean), held / m
}

var sampledCases = []struct {
	p float64
	n uint64
}{{0.5, 10}, {0.5, 10_000}, {0.1, 50}, {0.1, 10_000}, {0.01, 100}, {0.01, 20_000}, {0.01, 2_000_000}, {1e-4, 100_000}, {1e-6, 50_000_000}, {0.99, 1000}}

// The seeds are fixed: the test comes out the same every time.
func TestSamplerStatistics(t *testing.T) {
	for i, c := range sampledCases {
		off, spread, held := tally(t, c.p, c.n, 2000, func(trial int, s *Counter, n uint64) {
			s.sampler(uint64(i), uint64(trial)).AddAt(time.Unix(1000, 0), n)
		})
		t.Logf("p = %v, n = %d: mean %.2f standard errors off, spread %.3f, interval held %.1f %%", c.p, c.n, off, spread, 100*held)
		if math.Abs(off) > 3 || spread < 0.9 || spread > 1.1 {
			t.Errorf("p = %v, n = %d: estimates are %.2f standard errors off on average, or spread %.3f where 1 is expected", c.p, c.n, off, spread)
		}
		if held < 0.94 || held > 0.995 {
			t.Errorf("p = %v, n = %d: the 95 %% interval held %.1f %%", c.p, c.n, 100*held)
		}
	}
}

// TestIntervalCoverage works out how often the interval holds the truth, from
// the binomial distribution, for up to a hundred counted.
func TestIntervalCoverage(t *testing.T) {
	for _, p := range []float64{0.9, 0.5, 0.1, 0.01} {
		for n := 1.0; n*p < 100; n = math.Ceil(n * 1.07) {
			held := 0.0
			for k := 0.0; k <= n && k < n*p+12*math.Sqrt(n*p)+30; k++ {
				if lo, hi := (Estimate{uint64(k), p}).Interval(1.96); lo <= n && n <= hi {
					held += binomial(n, k, p)
				}
			}
			if held < 0.949 || held > 1+1e-9 {
				t.Errorf("p = %v, n = %v: the 95 %% interval holds %.2f %%", p, n, 100*held)
			}
		}
	}
}

// binomial is the probability of k out of n.
func binomial(n, k, p float64) float64 {
	choose := func(n, k float64) float64 {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(k + 1)
		c, _ := math.Lgamma(n - k + 1)
		return a - b - c
	}
	return math.Exp(choose(n, k) + k*math.Log(p) + (n-k)*math.Log1p(-p))
}

// The control passes over one event too many after each that is counted.
func TestSamplerStatisticsControl(t *testing.T) {
	off, _, _ := tally(t, 0.1, 10_000, 2000, func(trial int, s *Counter, n uint64) {
		r := s.sampler(1, uint64(trial))
		for n > r.skip+1 {
			n -= r.skip + 2
			s.counted.AddAt(time.Unix(1000, 0), 1)
			r.draw()
		}
	})
	if math.Abs(off) <= 3 {
		t.Errorf("a sampler with a bias is only %.2f standard errors off: the test proves nothing", off)
	}
}

// The shared form draws from the runtime's random numbers, which have no seed.
// So one run in 10^12 exceeds the bounds.
func TestCounterStatistics(t *testing.T) {
	for _, c := range sampledCases[:6] {
		for _, step := range []uint64{1, 7, c.n} {
			off, spread, held := tally(t, c.p, c.n, 200, func(_ int, s *Counter, n uint64) {
				for ; n > 0; n -= min(n, step) {
					s.AddAt(time.Unix(1000, 0), min(n, step))
				}
			})
			if math.Abs(off) > 7.2 || spread < 0.5 || spread > 1.6 || held < 0.75 {
				t.Errorf("p = %v, n = %d by %d: %.2f standard errors off, spread %.3f, interval held %.1f %%", c.p, c.n, step, off, spread, 100*held)
			}
		}
	}
}

// However events are handed over, one by one or in bulk, the same are counted.
func TestSamplerBulk(t *testing.T) {
	at := time.Unix(1000, 0)
	for seed := range uint64(50) {
		one, bulk := mustCounter(t, 0.05), mustCounter(t, 0.05)
		a, b := one.sampler(seed, 0), bulk.sampler(seed, 0)
		for i := range uint64(200) {
			for range i % 60 {
				a.AddAt(at, 1)
			}
			b.AddAt(at, i%60)
			if one.SumAt(at) != bulk.SumAt(at) {
				t.Fatalf("seed %d: %d counted one by one, %d in bulk", seed, one.SumAt(at).Counted, bulk.SumAt(at).Counted)
			}
		}
	}
}

func TestGeometric(t *testing.T) {
	for _, c := range []struct {
		u, p float64
		want uint64
	}{
		{0, 1, 0},
		{0.999, 1, 0},
		{0, 0.5, 0},
		{0.49, 0.5, 0},
		{0.51, 0.5, 1},
		{0.76, 0.5, 2},
		{0.5, MinShare, 693147180},
	} {
		if got := geometric(c.u, c.p); got != c.want {
			t.Errorf("geometric(%v, %v) = %d, want %d", c.u, c.p, got, c.want)
		}
	}
}

// With p = 1 every event is counted.
func TestCounterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustCounter(t, 1)
		r := s.Sampler()
		s.Add(1)
		r.Add(1)
		time.Sleep(9 * time.Second)
		s.Add(1 << 35)
		r.Add(1 << 30)
		r.Add(0)
		s.Add(0)
		const all = 2 + 1<<35 + 1<<30
		if e := s.Sum(); e.Counted != all || e.Count() != all || e.StdErr() != 0 || e.String() != "35433480194" {
			t.Errorf("sum %v, %+v", e, e)
		}
		if lo, hi := s.Sum().Interval(3); lo != all || hi != all {
			t.Errorf("interval %v to %v", lo, hi)
		}
		time.Sleep(1500 * time.Millisecond)
		if lo, hi := s.Bounds(); lo.Counted != all-2 || hi.Counted != all || lo.P != 1 {
			t.Errorf("bounds %v to %v", lo, hi)
		}
		if lo, hi := s.BoundsAt(time.Now().Add(time.Hour)); lo.Counted != 0 || hi.Counted != 0 {
			t.Errorf("bounds %v to %v an hour on", lo, hi)
		}
		if s.P() != 1 || s.Counted().Sum() != all-2 {
			t.Errorf("p %v, counter %d", s.P(), s.Counted().Sum())
		}
	})
}

func TestEstimateString(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		want string
	}{
		{Estimate{512, 0.01}, "51200 (46900 to 55900 at 95 %)"},
		{Estimate{5_120_000, 0.01}, "512000000 (511550000 to 512450000 at 95 %)"},
		{Estimate{0, 0.01}, "0 (0 to 480 at 95 %)"},
		{Estimate{3, 0.5}, "6 (3 to 15 at 95 %)"},
		{Estimate{7, 1}, "7"},
		{Estimate{0, 1}, "0"},
	} {
		if got := c.e.String(); got != c.want {
			t.Errorf("%d of p = %v: %q, want %q", c.e.Counted, c.e.P, got, c.want)
		}
	}
	if e := (Estimate{10_000, 0.0001}); math.Abs(e.StdErr()/e.Count()-0.01) > 1e-6 {
		t.Errorf("10,000 counted have a standard error of %v of %v, want 1 %%", e.StdErr(), e.Count())
	}
}

// Samplers and the Counter side by side: with p = 1 nothing is lost, with less
// the estimate is right.
func TestCounterConcurrent(t *testing.T) {
	const writers, adds = 4, 50_000
	all, some := mustCounter(t, 1), mustCounter(t, 0.01)
	now := time.Now()
	var wg sync.WaitGroup
	for writer := range writers {
		a, b := all.Sampler(), some.sampler(7, uint64(writer))
		wg.Go(func() {
			for i := range adds {
				if writer == 0 {
					all.AddAt(now, 1)
				} else {
					a.AddAt(now, 1)
				}
				b.AddAt(now, 1)
				if i%1000 == 0 {
					some.SumAt(now)
				}
			}
		})
	}
	wg.Wait()
	if got := all.SumAt(now).Counted; got != writers*adds {
		t.Errorf("%d counted with p = 1, want %d", got, writers*adds)
	}
	if lo, hi := some.SumAt(now).Interval(3); lo > writers*adds || hi < writers*adds {
		t.Errorf("%v, want %d", some.SumAt(now), writers*adds)
	}
}

func TestNoAllocations(t *testing.T) {
	s := mustCounter(t, 0.2)
	r := s.Sampler()
	at := time.Now()
	s.AddAt(at, 1000)
	for name, do := range map[string]func(){
		"Add":      func() { s.Add(1); s.Add(100) },
		"AddAt":    func() { s.AddAt(at, 1); s.AddAt(at, 100) },
		"Sampler":  func() { r.Add(1); r.AddAt(at, 1); r.Add(100) },
		"Sum":      func() { s.Sum(); s.SumAt(at); s.Bounds(); s.BoundsAt(at) },
		"Interval": func() { s.SumAt(at).Interval(1.96) },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// A Sampler has a cache line to itself: at 64 bytes it is allocated on one.
func TestSamplerSize(t *testing.T) {
	if got := unsafe.Sizeof(Sampler{}) - unsafe.Offsetof(Sampler{}.rnd) - unsafe.Sizeof(Sampler{}.rnd); got != 32 {
		t.Errorf("%d bytes of padding, want 32", got)
	}
	if got := unsafe.Sizeof(Sampler{}); got > 64 || got < 60 {
		t.Errorf("a Sampler has %d bytes, want 64, or 60 with 32-bit pointers", got)
	}
}
