package window

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// Properties of the designs that this package grew from, with their own figures, and their known flaws.

// The recent-access counter's demonstration: 20 seconds of random accesses with silence in seconds 5 to 7 and 15 to 17, and
// each second the accesses in the last 5 seconds, including the current one.
func TestAccessCounterDemonstration(t *testing.T) {
	seed := randtest.Seed(t)
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

// The counting window by period and length: its own test, with a millisecond as the unit of time. Its total is the sum of
// the finished cells.
func TestPeriodLengthVectors(t *testing.T) {
	c := mustCounter(t, Window{Span: 20 * time.Millisecond, Slot: 2 * time.Millisecond})
	add := func(at int, n, wantTotal uint64) {
		t.Helper()
		when := time.UnixMilli(int64(at))
		if !c.AddAt(when, n) {
			t.Fatalf("add(%d, %d) was refused", at, n)
		}
		if got := c.SumAt(when.Add(-2 * time.Millisecond)); got != wantTotal {
			t.Errorf("add(%d, %d): total %d, want %d", at, n, got, wantTotal)
		}
	}
	cell0 := func(at int, want uint64) { // its ring has 10 cells: 0 is also the cell for time 20
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
		got, err := c.CountAt(now, time.Duration(n)*time.Second)
		if got.Lo != want || err != nil {
			t.Errorf("last %d s: %d, %v; want %d", n, got.Lo, err, want)
		}
	}
	for _, span := range []time.Duration{-1, 0, 10*time.Second + 1, time.Hour} {
		if got, err := c.CountAt(now, span); got != (Count{}) || err == nil {
			t.Errorf("last %v: %+v, %v; want 0 and an error", span, got, err)
		}
		if got, err := c.Count(span); got != (Count{}) || err == nil {
			t.Errorf("last %v: %+v, %v; want 0 and an error", span, got, err)
		}
	}
	// Half a second short of 3 s: from 11.5 s on, so the slot of second 12.
	if got, _ := c.CountAt(now, 2500*time.Millisecond); got.Lo != 12+13+14 {
		t.Errorf("last 2.5 s: %d, want 39", got.Lo)
	}
	if got, _ := c.CountAt(now.Add(600*time.Millisecond), 2500*time.Millisecond); got.Lo != 13+14 {
		t.Errorf("last 2.5 s at 14.6 s: %d, want 27", got.Lo)
	}
}

func mustCounter(tb testing.TB, w Window) *Counter {
	tb.Helper()
	c := must.Get(NewCounter(w))(tb)
	return c
}
