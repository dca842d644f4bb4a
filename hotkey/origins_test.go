package hotkey_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/window"
)

// What JD hotkey describes, by its own figures, and the flaws it is known for.

// JD's worker window: duration to slices.
func TestJD(t *testing.T) {
	for _, c := range []struct {
		duration time.Duration
		slots    int
	}{{1, 5}, {2, 5}, {5, 5}, {6, 10}, {60, 10}, {600, 10}} {
		w, err := hotkey.JD(c.duration * time.Second)
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
		if w, err := hotkey.JD(d); err == nil || w != (window.Window{}) {
			t.Errorf("JD(%v) = %+v, %v; want an error", d, w, err)
		}
	}
}

// Its 32-bit sum was hot at 2e9 and not at 4e9.
func TestJDSumBeyond32Bits(t *testing.T) {
	w, _ := hotkey.JD(2 * time.Second)
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
	w, _ := hotkey.JD(2 * time.Second)
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
		w, _ := hotkey.JD(2 * time.Second)
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

func mustCounter(tb testing.TB, w window.Window) *window.Counter {
	tb.Helper()
	c, err := window.NewCounter(w)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
