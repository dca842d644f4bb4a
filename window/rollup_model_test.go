package window

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRollupModel compares every verb of a Rollup with the list of all events.
func TestRollupModel(t *testing.T) {
	amounts := make([]int64, 41)
	for i := range amounts {
		amounts[i] = 1<<i - 1
	}
	testModel(t, 2000, 60, func(rnd *rand.Rand, seq int) modelTest {
		r := randomRollup(t, rnd, seq%3 == 0)
		m := newExactLog(rollupWindows(r)...)
		return modelTest{
			log: m, amounts: amounts, sums: 1, stats: r.Stats,
			live: func(at int64, _ int, n int64) {
				r.addLive(at, uint64(n))
				m.count(rollupNow(m, at), 0, n)
			},
			addAt:   func(at int64, _ int, n int64) bool { return r.AddAt(time.Unix(0, at), uint64(n)) },
			compare: func(t *testing.T, at int64) { compareRollup(t, r, m, rnd, at) },
		}
	})
}

func rollupWindows(r *Rollup) (windows []Window) {
	for i, span := range r.spans {
		windows = append(windows, Window{Span: span, Slot: time.Duration(r.windows[i].width), Ahead: r.ahead})
	}
	return windows
}

// rollupNow returns the time that a live call at now is about.
func rollupNow(m *exactLog, now int64) int64 {
	if m.any {
		now = max(now, m.reached)
	}
	return now
}

func randomRollup(t *testing.T, rnd *rand.Rand, ahead bool) *Rollup {
	config := RollupConfig{}
	for range 1 + rnd.IntN(5) {
		span := time.Duration(1+rnd.IntN(4000)) * time.Millisecond
		switch rnd.IntN(4) {
		case 0:
			span = time.Duration(1+rnd.IntN(30)) * 24 * time.Hour
		case 1:
			span = time.Duration(1+rnd.IntN(4)) * time.Second
		}
		if !slices.Contains(config.Spans, span) {
			config.Spans = append(config.Spans, span)
		}
	}
	if ahead {
		config.Ahead = time.Duration(1 + rnd.Int64N(3*int64(config.Spans[0])))
	}
	return mustRollup(t, config)
}

func compareRollup(t *testing.T, r *Rollup, m *exactLog, rnd *rand.Rand, at int64) {
	t.Helper()
	check := func(verb string, span, at int64, c Count) {
		t.Helper()
		lo, hi := m.bounds(0, at, span)
		if c.Lo != uint64(lo) || c.Hi != uint64(hi) || c.Estimate < c.Lo || c.Estimate > c.Hi {
			t.Errorf("%s of %v at %d: %+v, want %d to %d", verb, time.Duration(span), at, c, lo, hi)
		}
	}
	when := time.Unix(0, at)
	for i, c := range r.AppendCountsAt(when, nil) {
		check("AppendCountsAt", m.spans[i], at, c)
		if truth := uint64(m.truth(at, m.spans[i])); m.any && at >= m.reached && (truth < c.Lo || truth > c.Hi) {
			t.Errorf("%v at %d: the count is %d, the bounds are %d and %d", r.spans[i], at, truth, c.Lo, c.Hi)
		}
	}
	span := m.spans[rnd.IntN(len(m.spans))]
	if rnd.IntN(2) == 0 {
		span = 1 + rnd.Int64N(span)
	}
	c, err := r.CountAt(when, time.Duration(span))
	check("CountAt", span, at, c)
	live, liveErr := r.countOf(moment{at, true}, time.Duration(span))
	check("live count", span, rollupNow(m, at), live)
	if err != nil || liveErr != nil {
		t.Errorf("counts of %d: %v, %v", span, err, liveErr)
	}
}
