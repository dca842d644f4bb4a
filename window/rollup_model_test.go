package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// rollupModel is the exact log: a list of all events, gone through from
// beginning to end for every answer, for each span by itself.
type rollupModel struct {
	spans, widths []int64
	ahead         int64
	events        []modelEvent
	any, refused  bool
	reached       int64 // the latest time
	pending       int64
	late, future  uint64
}

func newRollupModel(r *Rollup) *rollupModel {
	m := &rollupModel{ahead: int64(r.ahead)}
	for i := range r.spans {
		m.spans = append(m.spans, int64(r.spans[i]))
		m.widths = append(m.widths, r.windows[i].width)
	}
	return m
}

func (m *rollupModel) newest(i int) int64 { return floorDiv(m.reached, m.widths[i]) }
func (m *rollupModel) oldest(i int) int64 { return m.newest(i) - m.spans[i]/m.widths[i] }

func floorDiv(a, b int64) int64 {
	q := a / b
	for q*b > a {
		q--
	}
	return q
}

// end is the end of the first of the newest slots.
func (m *rollupModel) end() int64 {
	end := int64(math.MaxInt64)
	for i := range m.spans {
		end = min(end, (m.newest(i)+1)*m.widths[i])
	}
	return end
}

func (m *rollupModel) addAt(t, n int64) bool {
	if m.any {
		if m.ahead > 0 && t-m.end() >= m.ahead {
			if !m.refused || t-m.pending > m.spans[0] || m.pending-t > m.spans[0] {
				m.refused, m.pending = true, t
				m.future++
				return false
			}
		}
		late := true
		for i := range m.spans {
			late = late && floorDiv(t, m.widths[i]) < m.oldest(i)
		}
		if late {
			m.late++
			return false
		}
	}
	m.count(t, n)
	return true
}

func (m *rollupModel) addLive(now, n int64) {
	if m.any {
		now = max(now, m.reached)
	}
	m.count(now, n)
}

func (m *rollupModel) count(t, n int64) {
	if !m.any || t > m.reached {
		m.any, m.reached = true, t
	}
	m.events = append(m.events, modelEvent{t: t, n: n})
}

// sum counts the slots of span i from first to last that are still kept.
func (m *rollupModel) sum(i int, first, last int64) (sum uint64) {
	if !m.any {
		return 0
	}
	first = max(first, m.oldest(i))
	for _, e := range m.events {
		if s := floorDiv(e.t, m.widths[i]); first <= s && s <= last {
			sum += uint64(e.n)
		}
	}
	return sum
}

func (m *rollupModel) bounds(t, span int64) (lo, hi uint64) {
	i := 0
	for m.spans[i] < span {
		i++
	}
	w := m.widths[i]
	first, last := floorDiv(t-span, w)+1, floorDiv(t, w)
	if lo = m.sum(i, first, last); (t-span+1)%w == 0 {
		return lo, lo
	}
	return lo, m.sum(i, first-1, last)
}

// step is the next time of a random walk that goes back and forth, rests, and
// jumps to where something changes.
func (m *rollupModel) step(rnd *rand.Rand, t int64) int64 {
	i := rnd.IntN(len(m.spans))
	span, width := m.spans[i], m.widths[i]
	switch rnd.IntN(16) {
	case 0, 1, 2, 3:
		return t + rnd.Int64N(width)
	case 4, 5:
		return t + width
	case 6:
		return floorDiv(t, width)*width + width - 1
	case 7, 8:
		return t - rnd.Int64N(width) - 1
	case 9:
		return t - rnd.Int64N(span+width)
	case 10:
		return t + rnd.Int64N(span+width)
	case 11:
		return t + rnd.Int64N(3*span)
	case 12:
		return m.oldest(i)*width - rnd.Int64N(2) // the edge of what the span keeps
	case 13:
		return m.end() + m.ahead - rnd.Int64N(2) // the edge of what is future
	}
	return t
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

// TestRollupModel holds every verb against the exact log, in random sequences.
func TestRollupModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for seq := range sumsSequences() {
		r := randomRollup(t, rnd, seq%3 == 0)
		m := newRollupModel(r)
		at := rnd.Int64N(4e18) - 2e18
		for range 60 {
			if m.any || rnd.IntN(3) == 0 {
				at = min(max(m.step(rnd, at), -3e18), 3e18)
			}
			n := rnd.Int64N(1 << rnd.IntN(40))
			switch rnd.IntN(4) {
			case 0:
				m.compare(t, r, rnd, at)
			case 1:
				r.addLive(at, uint64(n))
				m.addLive(at, n)
			default:
				if got, want := r.AddAt(time.Unix(0, at), uint64(n)), m.addAt(at, n); got != want {
					t.Errorf("AddAt(%d, %d) = %t, want %t", at, n, got, want)
				}
			}
			if t.Failed() {
				t.Fatalf("spans %v, ahead %d, sequence %d", r.Spans(), m.ahead, seq)
			}
		}
		if r.Stats().Late != m.late || r.Stats().Future != m.future || r.Stats().Saturated != 0 {
			t.Fatalf("%v: late %d, future %d, saturated %d; want %d, %d, 0", r.Spans(), r.Stats().Late, r.Stats().Future, r.Stats().Saturated, m.late, m.future)
		}
	}
}

func (m *rollupModel) compare(t *testing.T, r *Rollup, rnd *rand.Rand, at int64) {
	t.Helper()
	when := time.Unix(0, at)
	check := func(verb string, span int64, lo, hi, wantLo, wantHi uint64) {
		t.Helper()
		if lo != wantLo || hi != wantHi {
			t.Errorf("%s of %v at %d: %d to %d, want %d to %d", verb, time.Duration(span), at, lo, hi, wantLo, wantHi)
		}
	}
	for i, c := range r.AppendCountsAt(when, nil) {
		lo, hi := m.bounds(at, m.spans[i])
		check("AppendCountsAt", m.spans[i], c.Lo, c.Hi, lo, hi)
		if m.any && at >= m.reached { // what the bounds promise, by the times of the events
			var truth uint64
			for _, e := range m.events {
				if e.t > at-m.spans[i] && e.t <= at {
					truth += uint64(e.n)
				}
			}
			if truth < c.Lo || truth > c.Hi {
				t.Errorf("%v at %d: the count is %d, the bounds are %d and %d", r.spans[i], at, truth, c.Lo, c.Hi)
			}
		}
	}
	span := m.spans[rnd.IntN(len(m.spans))]
	if rnd.IntN(2) == 0 {
		span = 1 + rnd.Int64N(span)
	}
	c, err := r.CountAt(when, time.Duration(span))
	if err != nil || c.Estimate < c.Lo || c.Estimate > c.Hi {
		t.Errorf("CountAt of %d at %d: %+v, %v", span, at, c, err)
	}
	wantLo, wantHi := m.bounds(at, span)
	check("CountAt", span, c.Lo, c.Hi, wantLo, wantHi)
	now := at
	if m.any {
		now = max(now, m.reached)
	}
	c, _ = r.countOf(moment{at, true}, time.Duration(span))
	wantLo, wantHi = m.bounds(now, span)
	check("live count", span, c.Lo, c.Hi, wantLo, wantHi)
}
