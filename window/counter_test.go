package window

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/test/randtest"
)

func TestCounterLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustCounter(t, Window{Span: 10 * time.Second, Slot: time.Second})
		if c.Sum() != 0 || c.Estimate() != 0 || c.Finished() != 0 {
			t.Error("an empty counter counts something")
		}
		for i := range 10 {
			if got := c.AddSum(uint64(i)); got != uint64(i*(i+1)/2) {
				t.Errorf("AddSum(%d) = %d, want %d", i, got, i*(i+1)/2)
			}
			time.Sleep(time.Second)
		}
		c.Add(10)
		// Now is 10 s: slot 0 has 0 and is cut, slots 1 to 10 have 1 to 10.
		if lo, hi := c.Bounds(); lo != 55 || hi != 55 {
			t.Errorf("bounds %d to %d, want 55", lo, hi)
		}
		time.Sleep(1500 * time.Millisecond)
		// 11.5 s: slot 1 is cut in the middle.
		if lo, hi := c.Bounds(); lo != 54 || hi != 55 {
			t.Errorf("bounds %d to %d, want 54 to 55", lo, hi)
		}
		if got := c.Finished(); got != 55 {
			t.Errorf("finished %d, want 55", got)
		}
		if got, err := c.Count(3 * time.Second); got.Lo != 19 || err != nil {
			t.Errorf("last 3 s: %d, %v; want 19", got, err)
		}
		want := uint64(2)
		for start, count := range c.Slots() {
			if age := time.Since(start); count != want%12%11 || age != time.Duration(11-want)*time.Second+500*time.Millisecond {
				t.Errorf("slot of %v ago has %d, want %d", age, count, want)
			}
			want++
		}
		if want != 12 {
			t.Errorf("Slots ended before slot %d, want 12", want)
		}
		time.Sleep(10 * time.Second)
		if lo, hi := c.Bounds(); lo != 0 || hi != 0 {
			t.Errorf("10 s later: bounds %d to %d, want 0", lo, hi)
		}
	})
}

// Slots stops when the loop does.
func TestSlotsBreak(t *testing.T) {
	c := mustCounter(t, Last(time.Minute))
	n := 0
	for range c.Slots() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d slots, want 3", n)
	}
}

func TestEstimate(t *testing.T) {
	c := mustCounter(t, Window{Span: 10 * time.Second, Slot: time.Second})
	start := time.Unix(500, 0)
	c.AddAt(start, 100)
	c.AddAt(start.Add(5*time.Second), 7)
	for _, x := range []struct {
		after time.Duration
		want  uint64
	}{
		{5 * time.Second, 107},
		{10*time.Second - 1, 107},
		{10 * time.Second, 107},
		{10*time.Second + 250*time.Millisecond, 82},
		{10*time.Second + 500*time.Millisecond, 57},
		{11*time.Second - 1, 7},
		{11 * time.Second, 7},
		{16 * time.Second, 0},
	} {
		if got := c.EstimateAt(start.Add(x.after)); got != x.want {
			t.Errorf("after %v: %d, want %d", x.after, got, x.want)
		}
	}
}

// Without Ahead one event empties the window, as documented, and live adds and
// reads go on in its slot.
func TestLiveBehindEvents(t *testing.T) {
	c := mustCounter(t, Window{Span: 10 * time.Second, Slot: time.Second})
	c.Add(5)
	c.AddAt(time.Now().AddDate(73, 0, 0), 1)
	for i := range 10 {
		if got := c.AddSum(1); got != uint64(i)+2 {
			t.Fatalf("sum %d, want %d", got, i+2)
		}
	}
	if got := c.Sum(); got != 11 {
		t.Errorf("sum %d, want 11", got)
	}
}

func TestTimesAtTheEnds(t *testing.T) {
	end := time.Unix(1<<63-62135596801, 999999999) // beyond it, times wrap
	for _, w := range []Window{Last(time.Millisecond), {Span: time.Millisecond, Slot: 10}, Last(time.Hour), {Span: MaxSpan, Slot: MaxSpan}, {Span: MaxSpan, Slot: MaxSpan, Ahead: MaxSpan}} {
		for _, at := range []time.Time{
			{},
			end, time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64, 0), time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64),
			time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC), time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC), time.Unix(-1, 0), time.Unix(0, -1),
		} {
			c := mustCounter(t, w)
			if !c.AddAt(at, 3) || c.SumAt(at) != 3 {
				t.Errorf("%v at %v: sum %d, want 3", w, at, c.SumAt(at))
			}
			lo, hi := c.BoundsAt(at)
			last, err := c.CountAt(at, w.Span)
			slot, ok := c.SlotAt(at)
			if lo != 3 || hi != 3 || last != (Count{3, 3, 3}) || err != nil || slot != 3 || !ok || c.sum(c.clock.at(at), int64(w.Slot)) != 0 || c.EstimateAt(at) != 3 {
				t.Errorf("%v at %v: bounds %d %d, last %+v %v, slot %d %t, finished %d", w, at, lo, hi, last, err, slot, ok, c.sum(c.clock.at(at), int64(w.Slot)))
			}
			c.Add(1)
			c.AddAt(time.Time{}, 1)
			c.AddAt(end, 1)
			c.AddAt(end, 1)
			if got := c.SumAt(end); got == 0 {
				t.Errorf("%v at %v: the end of time counts 0", w, at)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	c := mustCounter(t, Last(time.Second))
	at := time.Now()
	c.Add(1)
	step := func() time.Time { at = at.Add(20 * time.Millisecond); return at }
	for name, do := range map[string]func(){
		"Add":        func() { c.Add(1) },
		"Add large":  func() { c.Add(1 << 30) },
		"Rate":       func() { _, _ = c.Rate(time.Second) },
		"PeakRate":   func() { c.PeakRate() },
		"AddAt":      func() { c.AddAt(step(), 1) },
		"AddAt late": func() { c.AddAt(time.Unix(0, 0), 1) },
		"AddAt idle": func() { at = at.Add(time.Hour); c.AddAt(at, 1) },
		"AddSum":     func() { c.AddSum(1) },
		"AddSumAt":   func() { c.AddSumAt(step(), 1) },
		"Sum":        func() { c.Sum() },
		"SumAt":      func() { c.SumAt(at) },
		"Count":      func() { _, _ = c.Count(time.Second / 2); _, _ = c.CountAt(at, time.Second/2) },
		"Bounds":     func() { c.Bounds() },
		"BoundsAt":   func() { c.BoundsAt(at) },
		"Estimate":   func() { c.Estimate() },
		"Finished":   func() { c.Finished() },
		"SlotAt":     func() { c.SlotAt(at) },
		"SlotsAt": func() {
			for range c.SlotsAt(at) {
			}
		},
		"figures": func() { _ = c.Stats().Late + c.Stats().Future + c.Stats().Saturated },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// The package comment states how much memory a window takes.
func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(Counter{}); got > 144 {
		t.Errorf("a Counter has %d bytes, want at most 144", got)
	}
	var c *Counter
	if n := testing.AllocsPerRun(100, func() { c, _ = NewCounter(Last(time.Minute)) }); n != 1 {
		t.Errorf("NewCounter allocates %v times, want 1", n)
	}
	if n := testing.AllocsPerRun(100, func() { c, _ = NewCounter(Last(time.Minute)); c.Add(1) }); n != 3 {
		t.Errorf("NewCounter and the first add allocate %v times, want 3", n)
	}
}

// A clock near the ends of what int64 holds saturates and does not wrap.
func TestClockSaturates(t *testing.T) {
	c := mustCounter(t, Last(time.Hour))
	for _, wall := range []int64{minTime, maxTime} {
		c.clock.wall = wall
		if got := c.clock.nanosSlow(c.clock.base.Add(math.MaxInt64)); got != maxTime && wall > 0 || got < wall {
			t.Errorf("from %d, 292 years on: %d", wall, got)
		}
		if got := c.clock.nanosSlow(c.clock.base.Add(math.MinInt64)); got != minTime && wall < 0 || got > wall {
			t.Errorf("from %d, 292 years back: %d", wall, got)
		}
	}
}

// The short way to put a time on the clock and the long one agree.
func TestClockNanos(t *testing.T) {
	clock := newLiveClock()
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	zone := time.FixedZone("", 3600)
	for range 10_000 {
		d := time.Duration(rnd.Uint64()) >> rnd.IntN(63)
		for _, at := range []time.Time{
			clock.base.Add(d), clock.base.Add(d).Round(0), clock.base.Add(d).In(zone),
			time.Unix(0, int64(d)), time.Unix(int64(d), 999_999_999).UTC(),
			{},
		} {
			if got, want := clock.nanos(at), clock.nanosSlow(at); got != want {
				t.Fatalf("%v: %d, want %d", at, got, want)
			}
		}
	}
}
