package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// An exactLog is the documented behavior of Counter, Sums, Rollup and Table: lists of all events, read from the beginning
// to the end for each answer. Its windows have their spans in ascending order, and full is the largest count of a slot, 0
// for none.
type exactLog struct {
	spans, widths []int64
	ahead, full   int64

	events           map[any][]loggedEvent // by key, or by the number of a sum
	any, refused     bool
	reached, pending int64 // the latest time that was counted, and the last that was refused as future
	stats            Stats
}

// A loggedEvent is n events, or an amount n.
type loggedEvent struct{ t, n int64 }

func newExactLog(windows ...Window) *exactLog {
	m := &exactLog{ahead: int64(windows[0].Ahead), events: map[any][]loggedEvent{}}
	for _, w := range windows {
		m.spans, m.widths = append(m.spans, int64(w.Span)), append(m.widths, int64(w.Slot))
	}
	return m
}

// reach moves the windows on to t.
func (m *exactLog) reach(t int64) {
	if !m.any || t > m.reached {
		m.any, m.reached = true, t
	}
}

// newest returns the newest slot of window w, and oldest the oldest that it keeps.
func (m *exactLog) newest(w int) int64 { return windowtest.FloorDiv(m.reached, m.widths[w]) }
func (m *exactLog) oldest(w int) int64 { return m.newest(w) - m.spans[w]/m.widths[w] }

// end is the end of the first of the newest slots.
func (m *exactLog) end() int64 {
	end := int64(math.MaxInt64)
	for w := range m.spans {
		end = min(end, (m.newest(w)+1)*m.widths[w])
	}
	return end
}

func (m *exactLog) addAt(t int64, key any, n int64) bool {
	if m.any && m.ahead > 0 && t-m.end() >= m.ahead {
		if !m.refused || t-m.pending > m.spans[0] || m.pending-t > m.spans[0] {
			m.refused, m.pending = true, t
			m.stats.Future++
			return false
		}
	}
	if m.any && !m.keeps(t) {
		m.stats.Late++
		return false
	}
	m.count(t, key, n)
	return true
}

// keeps reports whether a window keeps the slot of t.
func (m *exactLog) keeps(t int64) bool {
	for w := range m.spans {
		if windowtest.FloorDiv(t, m.widths[w]) >= m.oldest(w) {
			return true
		}
	}
	return false
}

// addLive counts in the newest slot if the slot of now has left the window.
func (m *exactLog) addLive(now int64, key any, n int64) {
	if m.any && windowtest.FloorDiv(now, m.widths[0]) <= m.oldest(0) {
		now = m.newest(0) * m.widths[0]
	}
	m.count(now, key, n)
}

func (m *exactLog) count(t int64, key any, n int64) {
	m.reach(t)
	if slot := windowtest.FloorDiv(t, m.widths[0]); m.full > 0 && n > m.full-m.sum(0, key, slot, slot) {
		n = m.full - m.sum(0, key, slot, slot)
		m.stats.Saturated++
	}
	m.events[key] = append(m.events[key], loggedEvent{t, n})
	if len(m.events[key]) > 2000 { // expired events are not needed any more
		m.events[key] = slices.DeleteFunc(m.events[key], func(e loggedEvent) bool { return !m.keeps(e.t) })
	}
}

// sum returns the events of a key in the kept slots of window w from first to last.
func (m *exactLog) sum(w int, key any, first, last int64) (sum int64) {
	if !m.any {
		return 0
	}
	first = max(first, m.oldest(w))
	for _, e := range m.events[key] {
		if s := windowtest.FloorDiv(e.t, m.widths[w]); first <= s && s <= last {
			sum += e.n
		}
	}
	return sum
}

// windowOf returns the shortest window that contains span.
func (m *exactLog) windowOf(span int64) (w int) {
	for m.spans[w] < span {
		w++
	}
	return w
}

// bounds returns the events of a key in the slots in (t-span, t], without and with the slot that begins before.
func (m *exactLog) bounds(key any, t, span int64) (without, with int64) {
	w := m.windowOf(span)
	first, last := windowtest.FloorDiv(t-span, m.widths[w])+1, windowtest.FloorDiv(t, m.widths[w])
	if without = m.sum(w, key, first, last); (t-span+1)%m.widths[w] == 0 {
		return without, without
	}
	return without, m.sum(w, key, first-1, last)
}

// gone reports whether no window has an event of a key.
func (m *exactLog) gone(key any) bool {
	return !slices.ContainsFunc(m.events[key], func(e loggedEvent) bool { return e.n > 0 && m.keeps(e.t) })
}

// truth counts the events of (t-span, t] one by one.
func (m *exactLog) truth(t, span int64) (sum int64) {
	for _, e := range m.events[0] {
		if e.t > t-span && e.t <= t {
			sum += e.n
		}
	}
	return sum
}

// walk yields random times that go back and forth, rest, and jump to where something
// changes, a few times by one of the far numbers of slots.
func (m *exactLog) walk(rnd *rand.Rand, steps int, far []int64) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		at, jumps := rnd.Int64N(4e18)-2e18, 5
		for range steps {
			next := m.step(rnd, at)
			if jumps > 0 && len(far) > 0 && rnd.IntN(200) == 0 {
				jumps--
				if d := far[rnd.IntN(len(far))]; float64(d)*float64(m.widths[0]) < 1e17 {
					next += (d + rnd.Int64N(5) - 2) * m.widths[0]
				}
			}
			if at = min(max(next, -3e18), 3e18); !yield(at) {
				return
			}
		}
	}
}

func (m *exactLog) step(rnd *rand.Rand, t int64) int64 {
	w := rnd.IntN(len(m.spans))
	span, width := m.spans[w], m.widths[w]
	switch rnd.IntN(18) {
	case 0, 1, 2, 3, 4:
		return t + rnd.Int64N(width)
	case 5, 6:
		return t + width
	case 7:
		return windowtest.FloorDiv(t, width)*width + width - 1
	case 8, 9:
		return t - rnd.Int64N(width) - 1
	case 10:
		return t - rnd.Int64N(span+width)
	case 11:
		return t + rnd.Int64N(span+width)
	case 12:
		return t + rnd.Int64N(8*span)
	case 13:
		if m.any {
			return m.oldest(w)*width - rnd.Int64N(2) // the oldest accepted time
		}
	case 14:
		if m.any {
			return m.end() + m.ahead - rnd.Int64N(2) // the newest accepted time
		}
	}
	return t
}

// A modelTest is a window that is compared with an exactLog.
type modelTest struct {
	log     *exactLog
	far     []int64 // see exactLog.walk
	amounts []int64
	sums    int
	live    func(now int64, i int, n int64)
	addAt   func(t int64, i int, n int64) bool
	compare func(t *testing.T, at int64)
	stats   func() Stats
}

// testModel compares windows made by open with the list of all events, in random sequences of their verbs.
func testModel(t *testing.T, sequences, steps int, open func(rnd *rand.Rand, seq int) modelTest) {
	switch {
	case longTests():
		sequences = 1_000_000
	case testing.Short():
		sequences /= 10
	}
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for seq := range sequences {
		x := open(rnd, seq)
		for at := range x.log.walk(rnd, steps, x.far) {
			i, n := rnd.IntN(x.sums), x.amounts[rnd.IntN(len(x.amounts))]
			switch rnd.IntN(4) {
			case 0:
				x.compare(t, at)
			case 1:
				x.live(at, i, n)
			default:
				had := x.addAt(at, i, n)
				if want := x.log.addAt(at, i, n); had != want {
					t.Errorf("an add of %d at %d: %t, want %t", n, at, had, want)
				}
			}
			if t.Failed() {
				t.Fatalf("spans %v, slots %v, ahead %v, sequence %d", x.log.spans, x.log.widths, time.Duration(x.log.ahead), seq)
			}
		}
		if got := x.stats(); got != x.log.stats {
			t.Fatalf("spans %v: %+v, want %+v", x.log.spans, got, x.log.stats)
		}
	}
}

// liveTime returns the time that a live read at now is about.
func (m *exactLog) liveTime(now int64) int64 {
	if m.any {
		now = max(now, m.newest(0)*m.widths[0])
	}
	return now
}

func randomWindow(rnd *rand.Rand, ahead bool) Window {
	for {
		w := Window{Span: time.Duration(1+rnd.IntN(3000)) * time.Millisecond}
		n := 1 + rnd.IntN(20)
		if rnd.IntN(4) == 0 {
			n = 1 + rnd.IntN(3)
		}
		if w.Span%time.Duration(n) != 0 {
			continue
		}
		w.Slot = w.Span / time.Duration(n)
		if ahead {
			w.Ahead = time.Duration(1 + rnd.Int64N(3*int64(w.Span)))
		}
		return w
	}
}
