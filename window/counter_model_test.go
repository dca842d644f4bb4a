package window

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/windowtest"
)

const modelFull = 1<<36 - 1

var modelAdds = []int64{0, 1, 1, 1, 2, 5, 255, 256, 257, 1 << 20, modelFull - 1, modelFull, modelFull + 1, 1 << 40}

// TestModel compares every verb of a Counter with the list of all events. Every other sequence uses only times of events,
// whose true count is within the bounds.
func TestModel(t *testing.T) {
	testModel(t, 3000, 150, func(rnd *rand.Rand, seq int) modelTest {
		w := randomWindow(rnd, seq%3 == 0)
		c, m := mustCounter(t, w), newExactLog(w)
		m.full = modelFull
		x := modelTest{log: m, amounts: modelAdds, sums: 1, stats: c.Stats}
		size := int64(1)
		for size <= m.spans[0]/m.widths[0] {
			size *= 2
		}
		for _, turns := range []int64{1, 2, 3, 1 << 25, 1 << 26, 1 << 27, 1 << 28} { // a stamp comes back after some
			x.far = append(x.far, turns*size)
		}
		restripe := func() {}
		if seq%4 > 1 { // several lanes hold more than one
			x.amounts = modelAdds[:10]
			restripe = func() {
				if rnd.IntN(4) == 0 {
					c.ring.Restripe() // the next adds go to other lanes
				}
			}
		}
		x.addAt = func(at int64, _ int, n int64) bool {
			restripe()
			if n > 0 && rnd.IntN(2) == 0 {
				return c.AddAt(time.Unix(0, at), uint64(n))
			}
			sum, ok := c.AddSumAt(time.Unix(0, at), uint64(n))
			if after := c.SumAt(time.Unix(0, at)); sum != after {
				t.Errorf("AddSumAt at %d: %d, %t; SumAt is %d", at, sum, ok, after)
			}
			return ok
		}
		x.live = func(at int64, _ int, n int64) {
			restripe()
			if seq%2 == 0 {
				x.addAt(at, 0, n)
				m.addAt(at, 0, n)
				return
			}
			c.ring.AddLive(at, uint64(n))
			m.addLive(at, 0, n)
		}
		x.compare = func(t *testing.T, at int64) { compareCounter(t, c, m, at, seq%2 == 0) }
		return x
	})
}

func compareCounter(t *testing.T, c *Counter, m *exactLog, at int64, eventTimes bool) {
	t.Helper()
	check := func(verb string, got uint64, want int64) {
		t.Helper()
		if got != uint64(want) {
			t.Errorf("%s at %d: %d, want %d", verb, at, got, want)
		}
	}
	when, span, slots := time.Unix(0, at), m.spans[0], m.spans[0]/m.widths[0]
	last := windowtest.FloorDiv(at, m.widths[0])
	wantLo, wantHi := m.bounds(0, at, span)
	lo, hi := c.BoundsAt(when)
	check("SumAt", c.SumAt(when), wantLo)
	check("lo", lo, wantLo)
	check("hi", hi, wantHi)
	check("finished", c.SumAt(when.Add(-c.window.Slot)), m.sum(0, 0, last-slots, last-1))
	for _, part := range []int64{1, m.widths[0], m.widths[0] + 1, span/2 + 1, span - 1, span} {
		if 0 < part && part <= span {
			got, err := c.CountAt(when, time.Duration(part))
			want, _ := m.bounds(0, at, part)
			check("CountAt", got.Lo, want)
			if err != nil || got.Estimate < got.Lo || got.Estimate > got.Hi {
				t.Errorf("CountAt of %d at %d: %+v, %v", part, at, got, err)
			}
		}
	}
	if est := c.EstimateAt(when); est < lo || est > hi {
		t.Errorf("estimate %d is not from %d to %d", est, lo, hi)
	}
	count, kept := c.SlotAt(when)
	check("SlotAt", count, m.sum(0, 0, last, last))
	if kept != (!m.any || last >= m.oldest(0)) {
		t.Errorf("SlotAt at %d: kept %t", at, kept)
	}
	slot := last - slots + 1
	for start, count := range c.SlotsAt(when) {
		check("SlotsAt", count, m.sum(0, 0, slot, slot))
		check("start", uint64(start.UnixNano()), slot*m.widths[0])
		slot++
	}
	check("end of SlotsAt", uint64(slot), last+1)
	if truth := uint64(m.truth(at, span)); eventTimes && m.stats.Saturated == 0 && at >= m.reached && (truth < lo || truth > hi) {
		t.Errorf("at %d the count is %d, but the bounds are %d and %d", at, truth, lo, hi)
	}
	wantLo, _ = m.bounds(0, m.liveTime(at), span)
	check("live sum", c.sum(moment{at, true}, 0), wantLo)
}
