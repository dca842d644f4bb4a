package lately

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/randtest"
)

func mustClock(t testing.TB, resolution time.Duration) *Clock {
	t.Helper()
	clock, err := NewClock(resolution)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clock.Close)
	return clock
}

func TestNewClock(t *testing.T) {
	for _, bad := range []time.Duration{-1, 1, 100*time.Microsecond - 1, time.Second + 1} {
		if _, err := NewClock(bad); err == nil {
			t.Errorf("NewClock(%v) is no error", bad)
		}
	}
	if got := mustClock(t, 0).resolution; got != int64(time.Millisecond) {
		t.Errorf("default resolution %v, want 1ms", time.Duration(got))
	}
}

// A counter on the zero Clock would never forget anything.
func TestZeroClockPanics(t *testing.T) {
	for name, f := range map[string]func(c *Clock){
		"Now":          func(c *Clock) { c.Now() },
		"Close":        func(c *Clock) { c.Close() },
		"NewCounterOn": func(c *Clock) { _, _ = NewCounterOn(c, Last(time.Second)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of the zero Clock does not panic", name)
				}
			}()
			f(new(Clock))
		}()
	}
}

// Adds by a coarse clock, at every rate: each counts in the slot of a time that
// is at most a resolution ago.
func TestCounterOnClock(t *testing.T) {
	seed, rounds := randtest.Seed(t), 3000
	if testing.Short() {
		rounds = 100
	}
	for _, resolution := range []time.Duration{minResolution, time.Millisecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			clock := mustClock(t, resolution)
			c, err := NewCounterOn(clock, Window{Span: 200 * time.Millisecond, Slot: 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			var adds []time.Time
			for range rounds {
				time.Sleep(time.Duration(rnd.Int64N(int64(2*resolution) >> (2 * rnd.IntN(6)))))
				for range rnd.IntN(40) {
					c.Add(1)
					adds = append(adds, time.Now())
				}
				checkLagging(t, c, adds, resolution)
				if t.Failed() {
					return
				}
				if rnd.IntN(500) == 0 {
					time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
				}
				for len(adds) > 0 && time.Since(adds[0]) > time.Second {
					adds = adds[1:]
				}
			}
		})
	}
}

// checkLagging compares the sum with what it is if all adds lag, or none.
func checkLagging(t *testing.T, c *Counter, adds []time.Time, lag time.Duration) {
	t.Helper()
	now := time.Now()
	first := now.Truncate(10 * time.Millisecond).Add(-190 * time.Millisecond)
	var least, most uint64
	for _, at := range adds {
		if !at.Before(first.Add(lag)) {
			least++
		}
		if !at.Before(first) {
			most++
		}
	}
	if got := c.Sum(); got < least || got > most {
		t.Errorf("%v: sum %d, want %d to %d", now, got, least, most)
	}
}

// A counter whose clock is closed goes on, precisely.
func TestClockClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := mustClock(t, time.Second)
		c, _ := NewCounterOn(clock, Window{Span: 10 * time.Second, Slot: time.Millisecond})
		c.Add(100)
		clock.Close()
		clock.Close()
		for range 100 {
			time.Sleep(time.Millisecond)
			for range 20 {
				c.Add(1)
			}
			if got, ok := c.SlotAt(time.Now()); got != 20 || !ok {
				t.Fatalf("the slot of now has %d, %t; want 20", got, ok)
			}
			if got := clock.Now(); !got.Equal(time.Now()) {
				t.Fatalf("Now() of a closed clock is %v, want %v", got, time.Now())
			}
		}
		if got := c.Sum(); got != 2100 {
			t.Errorf("sum %d, want 2100", got)
		}
	})
}

// Close ends the goroutine. A bubble ends only when all of its goroutines have,
// so one that went on would be a failure here.
func TestClockCloseEndsGoroutine(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		clock, _ := NewClock(0)
		time.Sleep(time.Minute)
		clock.Close()
	})
}

// The coarse time never goes back and is never ahead, also with many who move it
// on at once.
func TestConcurrentClockOnlyGrows(t *testing.T) {
	clock := mustClock(t, minResolution)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := clock.Now()
			for i := range 20_000 {
				if i%8 == 0 {
					clock.precise()
				}
				now := clock.Now()
				if now.Before(last) || now.UnixNano() > clock.live.now() {
					t.Errorf("%v after %v", now, last)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

// TestConcurrentCoarseLag measures how far adds lag, with all cores busy: twice as many
// goroutines as cores count, or compute. It fails only for what can't be: a time
// ahead. Its figures are in docs/dev/proofs.md.
//
//	LATELY_LONG=1 go test -run CoarseLag -v
func TestConcurrentCoarseLag(t *testing.T) {
	for _, x := range []struct {
		name           string
		adders, others int
		rest           int // work between two adds
	}{
		{"all add at full speed", 2 * runtime.GOMAXPROCS(0), 0, 0},
		{"one adds, the others compute", 1, 2 * runtime.GOMAXPROCS(0), 0},
		{"one adds every 20 us, the others compute", 1, 2 * runtime.GOMAXPROCS(0), 20_000},
		{"one adds every 2 ms, the others compute", 1, 2 * runtime.GOMAXPROCS(0), 2_000_000},
	} {
		t.Run(x.name, func(t *testing.T) { measureLag(t, x.adders, x.others, x.rest) })
	}
}

func measureLag(t *testing.T, adders, others, rest int) {
	lasts := 200 * time.Millisecond
	if longTests() {
		lasts = 10 * time.Second
	}
	clock := mustClock(t, 0)
	c, _ := NewCounterOn(clock, Window{Span: 10 * time.Second, Slot: 10 * time.Millisecond})
	var stop atomic.Bool
	var lags lagCounts
	var wg sync.WaitGroup
	for range others {
		wg.Go(func() {
			for !stop.Load() {
				spin(1000)
			}
		})
	}
	for range adders {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				spin(rest)
				if rest > 0 || i%64 < 16 {
					lags.measure(c)
				}
				c.Add(1)
			}
		})
	}
	end := time.Now().Add(lasts)
	for time.Now().Before(end) {
		runtime.Gosched()
		spin(10_000)
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("lag of %d adds: p50 %v, p99 %v, p99.9 %v, max %v; %d%% did not read the monotonic clock",
		lags.total.Load(), lags.quantile(0.5), lags.quantile(0.99), lags.quantile(0.999), time.Duration(lags.most.Load()),
		lags.brisk.Load()*100/max(1, lags.total.Load()))
	if ahead := lags.ahead.Load(); ahead > 0 {
		t.Errorf("%d adds ran ahead of the clock", ahead)
	}
}

// lagCounts is a histogram of lags with 16 steps for each doubling.
type lagCounts struct {
	counts       [64 * 16]atomic.Int64
	total, brisk atomic.Int64
	most, ahead  atomic.Int64
}

// measure counts by how much the time lags that an add of c would count at. If
// it takes long itself it was held up between its steps, and counts nothing.
func (l *lagCounts) measure(c *Counter) {
	before := c.clock.now()
	t := c.coarse.coarse.Load()
	brisk, _ := c.ring.AddCoarse(t, 0)
	after := c.clock.now()
	if after-before > 20_000 {
		return
	}
	l.total.Add(1)
	if !brisk { // then Add reads the clock
		l.counts[0].Add(1)
		return
	}
	l.brisk.Add(1)
	if t > after {
		l.ahead.Add(1)
	}
	lag := max(before-t, 0)
	l.counts[lagStep(lag)].Add(1)
	for m := l.most.Load(); lag > m && !l.most.CompareAndSwap(m, lag); m = l.most.Load() {
	}
}

func lagStep(lag int64) int { return int(16 * math.Log2(float64(lag+1))) }

// quantile returns a lag that the share q of all is not longer than.
func (l *lagCounts) quantile(q float64) time.Duration {
	var sum int64
	for step := range l.counts {
		if sum += l.counts[step].Load(); sum > 0 && float64(sum) >= q*float64(l.total.Load()) {
			return time.Duration(math.Exp2(float64(step+1) / 16)).Round(10)
		}
	}
	return 0
}

// spin computes for about n nanoseconds.
func spin(n int) {
	x := uint64(n) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	spun.Store(x)
}

var spun atomic.Uint64
