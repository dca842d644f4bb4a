package lately

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// What the designs that this package grew from describe, by their own figures,
// and the flaws they are known for.

// JD's worker window: duration to slices.
func TestJD(t *testing.T) {
	for _, c := range []struct {
		duration time.Duration
		slots    int
	}{{1, 5}, {2, 5}, {5, 5}, {6, 10}, {60, 10}, {600, 10}} {
		w, err := JD(c.duration * time.Second)
		if err != nil || w.Span != c.duration*time.Second || w.Slots() != c.slots {
			t.Errorf("JD(%ds) = %+v, %v; want %d slots", c.duration, w, err, c.slots)
		}
		slice := 200 * time.Millisecond
		if c.duration > 5 {
			slice = 100 * time.Millisecond
		}
		if w.Slot != c.duration*slice {
			t.Errorf("JD(%ds): slot %v, want %v", c.duration, w.Slot, c.duration*slice)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 999 * time.Millisecond, 1500 * time.Millisecond, 601 * time.Second, 1 << 62} {
		if w, err := JD(d); err == nil || w != (Window{}) {
			t.Errorf("JD(%v) = %+v, %v; want an error", d, w, err)
		}
	}
}

// Its 32-bit sum was hot at 2e9 and not at 4e9.
func TestJDSumBeyond32Bits(t *testing.T) {
	w, _ := JD(2 * time.Second)
	c := mustCounter(t, w)
	start := time.Unix(1_700_000_000, 0)
	for i := range 4 {
		c.AddAt(start.Add(time.Duration(i)*w.Slot), 1e9)
		if got, want := c.SumAt(start.Add(time.Duration(i)*w.Slot)), uint64(i+1)*1e9; got != want {
			t.Fatalf("sum %d, want %d", got, want)
		}
	}
	if got, _ := c.AddSumAt(start.Add(4*w.Slot), 1e10); got != 1.4e10 {
		t.Errorf("sum %d, want 1.4e10", got)
	}
}

// With the clock 10 minutes back, 10 a second became "hot" for 1000 in 2 s: its
// window neither expired nor restarted. Here the events are refused and said to
// be, the sums stay true, and counting goes on when time is back.
func TestJDClockBack(t *testing.T) {
	w, _ := JD(2 * time.Second)
	c := mustCounter(t, w)
	at := time.Unix(1_700_000_000, 0)
	feed := func(seconds int) (counted int) {
		for range seconds * 10 {
			sum, ok := c.AddSumAt(at, 1)
			if ok {
				counted++
			}
			if sum > 20 {
				t.Fatalf("10 a second gives %d in 2 s", sum)
			}
			at = at.Add(100 * time.Millisecond)
		}
		return counted
	}
	if got := feed(60); got != 600 {
		t.Fatalf("counted %d of 600", got)
	}
	at = at.Add(-10 * time.Minute)
	if got := feed(597); got != 0 || c.Stats().Late != 5970 {
		t.Errorf("counted %d of 5970 that are older than the window, late %d", got, c.Stats().Late)
	}
	at = at.Add(3 * time.Second) // past the events of before
	if feed(60); c.SumAt(at.Add(-1)) != 20 {
		t.Errorf("time is back, but the sum is %d", c.SumAt(at.Add(-1)))
	}
}

// Live adds and adds at time.Now() are on one clock.
func TestJDClockBackLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := JD(2 * time.Second)
		c := mustCounter(t, w)
		for i := range 100 {
			c.Add(1)
			c.AddAt(time.Now(), 1)
			want := uint64(min(2*(i+1), 40))
			lo, hi := c.Bounds()
			if lo > want || hi < want || lo+8 < hi {
				t.Fatalf("add %d: bounds %d to %d; want %d between, a slot of 8 apart", i, lo, hi, want)
			}
			if live, at := c.Sum(), c.SumAt(time.Now()); live != at || live != lo {
				t.Fatalf("add %d: sum %d, at now %d", i, live, at)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// The recent-access counter's demonstration: 20 seconds of random accesses with
// silence in seconds 5 to 7 and 15 to 17, and each second the accesses of the
// last 5 seconds, the current one included.
func TestAccessCounterDemonstration(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		c := mustCounter(t, Window{Span: 5 * time.Second, Slot: time.Second})
		var accesses [20]uint64
		for second := range accesses {
			if silent := second >= 5 && second <= 7 || second >= 15 && second <= 17; !silent {
				for range rnd.IntN(50) {
					c.Add(1)
					accesses[second]++
				}
			}
			var want uint64
			for _, n := range accesses[max(0, second-4) : second+1] {
				want += n
			}
			time.Sleep(time.Second - 1) // the end of the second
			if got := c.Sum(); got != want {
				t.Errorf("second %d: sum %d, want %d", second, got, want)
			}
			time.Sleep(time.Nanosecond)
		}
		time.Sleep(5*time.Second - 1)
		if got := c.Sum(); got != 0 {
			t.Errorf("after 5 s of silence: sum %d, want 0", got)
		}
	})
}

// The counting window by period and length: its own test, with a millisecond
// for its unit of time. Its total is that of the finished cells.
func TestPeriodLengthVectors(t *testing.T) {
	c := mustCounter(t, Window{Span: 20 * time.Millisecond, Slot: 2 * time.Millisecond})
	add := func(at int, n, wantTotal uint64) {
		t.Helper()
		when := time.UnixMilli(int64(at))
		if !c.AddAt(when, n) {
			t.Fatalf("add(%d, %d) was refused", at, n)
		}
		if got := c.FinishedAt(when); got != wantTotal {
			t.Errorf("add(%d, %d): total %d, want %d", at, n, got, wantTotal)
		}
	}
	cell0 := func(at int, want uint64) { // its ring has 10 cells: 0 is also that of time 20
		t.Helper()
		if got, ok := c.SlotAt(time.UnixMilli(int64(at))); got != want || !ok {
			t.Errorf("cell at %d: %d, %t; want %d", at, got, ok, want)
		}
	}
	add(0, 1, 0)
	add(1, 1, 0)
	add(2, 1, 2)
	cell0(0, 2)
	for at := 3; at <= 19; at++ {
		add(at, 1, uint64(at/2*2))
	}
	add(20, 3, 20)
	add(21, 3, 20)
	add(22, 3, 24)
	cell0(20, 6)
	add(26, 3, 23)
	add(43, 3, 6)
}

// The time wheel's reads: a past slot, and the last n seconds for any n up to
// its size; for other n it gives 0, which is here an error as well.
func TestTimeWheelReads(t *testing.T) {
	c := mustCounter(t, Window{Span: 10 * time.Second, Slot: time.Second})
	start := time.Unix(1000, 0)
	for i := range 15 {
		c.AddAt(start.Add(time.Duration(i)*time.Second), uint64(i))
	}
	now := start.Add(14 * time.Second)
	for n := 1; n <= 10; n++ {
		want := uint64(0)
		for i := 15 - n; i < 15; i++ {
			want += uint64(i)
		}
		got, err := c.SumLastAt(now, time.Duration(n)*time.Second)
		if got != want || err != nil {
			t.Errorf("last %d s: %d, %v; want %d", n, got, err, want)
		}
	}
	for _, span := range []time.Duration{-1, 0, 10*time.Second + 1, time.Hour} {
		if got, err := c.SumLastAt(now, span); got != 0 || err == nil {
			t.Errorf("last %v: %d, %v; want 0 and an error", span, got, err)
		}
		if got, err := c.SumLast(span); got != 0 || err == nil {
			t.Errorf("last %v: %d, %v; want 0 and an error", span, got, err)
		}
	}
	// Half a second short of 3 s: from 11.5 s on, so the slot of second 12.
	if got, _ := c.SumLastAt(now, 2500*time.Millisecond); got != 12+13+14 {
		t.Errorf("last 2.5 s: %d, want 39", got)
	}
	if got, _ := c.SumLastAt(now.Add(600*time.Millisecond), 2500*time.Millisecond); got != 13+14 {
		t.Errorf("last 2.5 s at 14.6 s: %d, want 27", got)
	}
}

func mustCounter(tb testing.TB, w Window) *Counter {
	tb.Helper()
	c, err := NewCounter(w)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
