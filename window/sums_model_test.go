package window

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/windowtest"
)

var sumsAmounts = []int64{0, 1, 1, -1, 2, -5, 1999, -1999, 1 << 32, -1 << 32, 1 << 40, -1 << 40}

// TestSumsModel compares every verb of Sums with the list of all amounts.
func TestSumsModel(t *testing.T) {
	testModel(t, 2000, 60, func(rnd *rand.Rand, seq int) modelTest {
		w, k := randomWindow(rnd, seq%3 == 0), 1+rnd.IntN(3)
		s, m := mustSums(t, w, k), newExactLog(w)
		return modelTest{
			log: m, amounts: sumsAmounts, sums: k, stats: s.Stats,
			live:    func(at int64, i int, n int64) { s.addLive(at, i, n); m.addLive(at, i, n) },
			addAt:   func(at int64, i int, n int64) bool { return s.AddAt(time.Unix(0, at), i, n) },
			compare: func(t *testing.T, at int64) { compareSums(t, s, m, k, at) },
		}
	})
}

func compareSums(t *testing.T, s *Sums, m *exactLog, k int, at int64) {
	t.Helper()
	check := func(verb string, i int, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s of sum %d at %d: %d, want %d", verb, i, at, got, want)
		}
	}
	when, span, width := time.Unix(0, at), m.spans[0], m.widths[0]
	all := s.AppendSumsAt(when, nil)
	for i := range k {
		without, with := m.bounds(i, at, span)
		lo, hi := s.BoundsAt(when, i)
		check("SumAt", i, s.SumAt(when, i), without)
		check("AppendSumsAt", i, all[i], without)
		check("lo", i, lo, min(without, with))
		check("hi", i, hi, max(without, with))
		slot := windowtest.FloorDiv(at-span, width) + 1
		for start, got := range s.SlotsAt(when, i) {
			check("SlotsAt", i, got, m.sum(0, i, slot, slot))
			check("start", i, start.UnixNano(), slot*width)
			slot++
		}
		check("end of SlotsAt", i, slot, windowtest.FloorDiv(at, width)+1)
	}
	live, _ := m.bounds(0, m.liveTime(at), span)
	check("live sum", 0, s.sum(moment{at, true}, 0), live)
}
