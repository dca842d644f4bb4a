package window

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

func mustSums(t testing.TB, w Window, n int) *Sums {
	t.Helper()
	s := must.Get(NewSums(w, n))(t)
	return s
}

func TestNewSumsErrors(t *testing.T) {
	for _, c := range []struct {
		w    Window
		n    int
		want string
	}{
		{Window{}, 1, "window: span 0s"},
		{Last(time.Minute), 0, "0 sums: must be from 1 to 1024"},
		{Last(time.Minute), -1, "-1 sums"},
		{Last(time.Minute), maxSums + 1, "1025 sums"},
	} {
		if s, err := NewSums(c.w, c.n); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewSums(%v, %d): error %v, want %q in it", c.w, c.n, err, c.want)
		}
	}
	s := mustSums(t, Last(time.Minute), 2)
	if s.Window().Slot != time.Second {
		t.Errorf("window %+v", s.Window())
	}
}

func TestSumsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustSums(t, Window{Span: 10 * time.Second, Slot: time.Second}, 2)
		for i := range 11 {
			s.Add(0, int64(100*i))
			s.Add(1, int64(i))
			time.Sleep(time.Second)
		}
		time.Sleep(500 * time.Millisecond)
		// Now is 11.5 s: slots 2 to 11 are inside, 11 is empty, 1 is cut.
		if s.Sum(0) != 5400 || s.Sum(1) != 54 {
			t.Errorf("sums %d and %d", s.Sum(0), s.Sum(1))
		}
		if lo, hi := s.Bounds(0); lo != 5400 || hi != 5500 {
			t.Errorf("bounds %d to %d", lo, hi)
		}
		if got := s.AppendSums([]int64{1}); !slices.Equal(got, []int64{1, 5400, 54}) {
			t.Errorf("all sums %v", got)
		}
		want := int64(2)
		for start, sum := range s.Slots(1) {
			if sum != want%11 || time.Since(start) != time.Duration(11-want)*time.Second+500*time.Millisecond {
				t.Errorf("slot of %v ago has %d, want %d", time.Since(start), sum, want%11)
			}
			want++
		}
		for _, sum := range s.Slots(0) {
			if sum != 200 {
				t.Errorf("the oldest slot has %v, want 200", sum)
			}
			break
		}
		time.Sleep(10 * time.Second)
		if s.Sum(0) != 0 {
			t.Errorf("10 s later: sum %d, want 0", s.Sum(0))
		}
	})
}

func TestSumsSaturate(t *testing.T) {
	s := mustSums(t, Window{Span: 4 * time.Second, Slot: time.Second}, 2)
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		n, want int64
		full    uint64
	}{
		{math.MaxInt64, maxSlotSum, 1},
		{1, maxSlotSum, 2},
		{-1, maxSlotSum - 1, 2},
		{1 << 40, maxSlotSum, 3},
		{-maxSlotSum, 0, 3},
		{math.MinInt64, -maxSlotSum, 4},
		{-1, -maxSlotSum, 5},
		{-1 << 40, -maxSlotSum, 6},
		{1, -maxSlotSum + 1, 6},
	} {
		s.AddAt(at, 0, c.n)
		if got := s.SumAt(at, 0); got != c.want || s.Stats().Saturated != c.full {
			t.Fatalf("after %d: sum %d, saturated %d; want %d, %d", c.n, got, s.Stats().Saturated, c.want, c.full)
		}
	}
	s.addLive(at.UnixNano(), 0, math.MinInt64)
	if got := s.SumAt(at, 0); got != -maxSlotSum || s.Stats().Saturated != 7 {
		t.Errorf("after a live add: sum %d, saturated %d; want %d, 7", got, s.Stats().Saturated, int64(-maxSlotSum))
	}
	// Four slots that are full are more than an int64 holds.
	for i := range 4 {
		s.AddAt(at.Add(time.Duration(i)*time.Second), 0, math.MaxInt64)
		s.AddAt(at.Add(time.Duration(i)*time.Second), 0, math.MaxInt64)
		s.AddAt(at.Add(time.Duration(i)*time.Second), 1, math.MinInt64)
	}
	end := at.Add(3 * time.Second)
	if in, out := s.SumAt(end, 0), s.SumAt(end, 1); in != math.MaxInt64 || out != math.MinInt64 {
		t.Errorf("sums %d and %d", in, out)
	}
}

func TestSumsIndexOutOfRange(t *testing.T) {
	for _, i := range []int{-1, 2, math.MaxInt} {
		s := mustSums(t, Last(time.Minute), 2)
		at := time.Unix(1000, 0)
		for name, do := range map[string]func(){
			"Add": func() { s.Add(i, 1) }, "AddAt": func() { s.AddAt(at, i, 1) }, "Sum": func() { s.AddAt(at, 0, 1); s.SumAt(at, i) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of sum %d of 2 did not panic", name, i)
					}
				}()
				do()
			}()
		}
		if !s.AddAt(at, 1, 5) { // hangs if a panic has left the mutex held
			t.Error("an add after the panics was refused")
		}
	}
}

func TestSumsTimesAtTheEnds(t *testing.T) {
	for _, w := range []Window{Last(time.Millisecond), {Span: time.Millisecond, Slot: 10}, Last(time.Hour), {Span: MaxSpan, Slot: MaxSpan}, {Span: MaxSpan, Slot: MaxSpan, Ahead: MaxSpan}} {
		for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64), time.Unix(0, 0), time.Unix(0, -1)} {
			s := mustSums(t, w, 1)
			if !s.AddAt(at, 0, 3) || s.SumAt(at, 0) != 3 {
				t.Errorf("%v at %v: sum %d, want 3", w, at, s.SumAt(at, 0))
			}
			if lo, hi := s.BoundsAt(at, 0); lo != 3 || hi != 3 {
				t.Errorf("%v at %v: bounds %d to %d", w, at, lo, hi)
			}
			s.Add(0, 1)
			s.AddAt(time.Unix(1<<40, 0), 0, 1)
			s.AddAt(time.Unix(1<<40, 0), 0, 1)
			if s.SumAt(time.Unix(1<<40, 0), 0) == 0 {
				t.Errorf("%v at %v: the end of time adds up to 0", w, at)
			}
		}
	}
}

func TestSumsNoAllocations(t *testing.T) {
	s := mustSums(t, Last(time.Second), 2)
	at := time.Now()
	step := func() time.Time { at = at.Add(20 * time.Millisecond); return at }
	ints := make([]int64, 0, 2)
	for name, do := range map[string]func(){
		"Add":    func() { s.Add(0, 1) },
		"AddAt":  func() { s.AddAt(step(), 0, 1) },
		"large":  func() { s.Add(0, 1<<40) },
		"idle":   func() { at = at.Add(time.Hour); s.AddAt(at, 0, 1) },
		"late":   func() { s.AddAt(time.Unix(0, 0), 0, 1) },
		"Sum":    func() { s.Sum(0); s.SumAt(at, 1) },
		"Bounds": func() { s.Bounds(0); s.BoundsAt(at, 0) },
		"all":    func() { s.AppendSums(ints); s.AppendSumsAt(at, ints) },
		"Slots": func() {
			for range s.SlotsAt(at, 0) {
			}
		},
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
