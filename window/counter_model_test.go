package window

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// model is the Counter as its documentation has it: a list of all events, gone
// through from beginning to end for every answer.
type model struct {
	span, slot, ahead int64
	events            []modelEvent
	newest            int64 // slot
	any, hasPending   bool
	pending           int64
	late, future      uint64
	saturated         uint64
}

type modelEvent struct{ t, slot, n int64 }

const modelFull = 1<<36 - 1

func (m *model) slotOf(t int64) int64 {
	s := t / m.slot
	for s*m.slot > t {
		s--
	}
	return s
}

func (m *model) slots() int64 { return m.span / m.slot }

func (m *model) addAt(t, n int64) bool {
	s := m.slotOf(t)
	if m.any && m.ahead > 0 && s > m.newest && t-(m.newest+1)*m.slot >= m.ahead {
		if !m.hasPending || t-m.pending > m.span || m.pending-t > m.span {
			m.hasPending, m.pending = true, t
			m.future++
			return false
		}
	}
	if m.any && s < m.newest-m.slots() {
		m.late++
		return false
	}
	m.count(t, s, n)
	return true
}

func (m *model) addLive(now, n int64) {
	s := m.slotOf(now)
	if m.any && s <= m.newest-m.slots() {
		s = m.newest
	}
	m.count(now, s, n)
}

func (m *model) count(t, s, n int64) {
	if !m.any || s > m.newest {
		m.any, m.newest = true, s
	}
	if have := m.inSlot(s); n > modelFull-have {
		n = modelFull - have
		m.saturated++
	}
	m.events = append(m.events, modelEvent{t, s, n})
	if len(m.events) > 2000 { // those that have gone are of no more use
		kept := m.events[:0]
		for _, e := range m.events {
			if e.slot >= m.newest-m.slots() {
				kept = append(kept, e)
			}
		}
		m.events = kept
	}
}

func (m *model) inSlot(s int64) (sum int64) {
	for _, e := range m.events {
		if e.slot == s && e.slot >= m.newest-m.slots() {
			sum += e.n
		}
	}
	return sum
}

// sum counts the slots that lie in (t-span, t], the current one included.
func (m *model) sum(t, span int64) (sum int64) {
	for _, e := range m.events {
		if e.slot >= m.newest-m.slots() && e.slot*m.slot > t-span && e.slot <= m.slotOf(t) {
			sum += e.n
		}
	}
	return sum
}

// cut counts the slot that t-span cuts through.
func (m *model) cut(t int64) int64 {
	s := m.slotOf(t - m.span)
	if s*m.slot+m.slot-1 <= t-m.span {
		return 0 // its last time is outside
	}
	return m.inSlot(s)
}

func (m *model) finished(t int64) (sum int64) {
	for s := m.slotOf(t) - m.slots(); s < m.slotOf(t); s++ {
		sum += m.inSlot(s)
	}
	return sum
}

// truth counts the events of (t-span, t] one by one, by their own times.
func (m *model) truth(t int64) (sum int64) {
	for _, e := range m.events {
		if e.t > t-m.span && e.t <= t {
			sum += e.n
		}
	}
	return sum
}

// latest is the time of the newest event.
func (m *model) latest() int64 {
	latest := int64(math.MinInt64)
	for _, e := range m.events {
		latest = max(latest, e.t)
	}
	return latest
}

// walk is a random time that goes back and forth, rests, and jumps.
type walk struct {
	*rand.Rand
	t    int64
	m    *model
	far  int // far jumps that are left
	size int64
}

func (w *walk) step() int64 {
	switch w.IntN(20) {
	case 0, 1, 2, 3, 4:
		w.t += w.Int64N(w.m.slot)
	case 5, 6, 7:
		w.t += w.m.slot
	case 8:
		w.t = w.m.slotOf(w.t)*w.m.slot + w.m.slot - 1 // the end of a slot
	case 9, 10:
		w.t -= w.Int64N(w.m.slot) + 1
	case 11:
		w.t -= w.Int64N(w.m.span + w.m.slot)
	case 12:
		w.t += w.Int64N(w.m.span + w.m.slot)
	case 13:
		w.t += w.m.slot * w.size * w.Int64N(4)
	case 14:
		if w.m.any {
			w.t = (w.m.newest-w.m.slots())*w.m.slot - w.Int64N(2) // the edge of what is late
		}
	case 15:
		if w.m.any {
			w.t = (w.m.newest+1)*w.m.slot + w.m.ahead - w.Int64N(2) // the edge of what is future
		}
	case 16:
		if w.far > 0 && w.IntN(10) == 0 {
			w.far--
			turns := []int64{1 << 25, 1 << 26, 1 << 27, 1 << 28}[w.IntN(4)]
			if d := float64(turns) * float64(w.size) * float64(w.m.slot); d < 1e17 {
				w.t += (turns*w.size + w.Int64N(5) - 2) * w.m.slot
			}
		}
	}
	return w.t
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

var modelAdds = []int64{0, 1, 1, 1, 2, 5, 255, 256, 257, 1 << 20, modelFull - 1, modelFull, modelFull + 1, 1 << 40}

// TestModel holds every verb against the model, in random sequences.
func TestModel(t *testing.T) {
	sequences := 3000
	switch {
	case longTests():
		sequences = 1_000_000
	case testing.Short():
		sequences = 300
	}
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for i := range sequences {
		w := randomWindow(rnd, i%3 == 0)
		c := mustCounter(t, w)
		m := &model{span: int64(w.Span), slot: int64(w.Slot), ahead: int64(w.Ahead)}
		at := &walk{Rand: rnd, t: rnd.Int64N(4e18) - 2e18, m: m, far: 5, size: 1}
		for at.size <= m.slots() {
			at.size *= 2
		}
		for range 150 {
			ns := at.step()
			if i%4 > 1 && rnd.IntN(4) == 0 {
				c.ring.Restripe() // the next adds go to other lanes
			}
			switch rnd.IntN(3) {
			case 0:
				compareReads(t, c, m, ns, i%2 == 0)
			case 1:
				n := modelAdds[rnd.IntN(len(modelAdds))]
				if i%4 > 1 {
					n &= 1<<20 - 1 // several lanes hold more than one
				}
				if i%2 == 0 || rnd.IntN(2) == 0 {
					if got, want := c.AddAt(time.Unix(0, ns), uint64(n)), m.addAt(ns, n); got != want {
						t.Fatalf("%+v: AddAt(%d, %d) = %t, want %t", w, ns, n, got, want)
					}
				} else {
					c.ring.AddLive(ns, uint64(n))
					m.addLive(ns, n)
				}
			}
			if t.Failed() {
				t.Fatalf("window %+v, sequence %d", w, i)
			}
		}
		if c.Stats().Late != m.late || c.Stats().Future != m.future || c.Stats().Saturated != m.saturated {
			t.Fatalf("%+v: late %d, future %d, saturated %d; want %d, %d, %d",
				w, c.Stats().Late, c.Stats().Future, c.Stats().Saturated, m.late, m.future, m.saturated)
		}
	}
}

func compareReads(t *testing.T, c *Counter, m *model, ns int64, eventTimes bool) {
	t.Helper()
	check := func(verb string, got uint64, want int64) {
		t.Helper()
		if got != uint64(want) {
			t.Errorf("%s at %d: %d, want %d", verb, ns, got, want)
		}
	}
	when := time.Unix(0, ns)
	check("SumAt", c.SumAt(when), m.sum(ns, m.span))
	lo, hi := c.BoundsAt(when)
	check("lo", lo, m.sum(ns, m.span))
	check("hi", hi, m.sum(ns, m.span)+m.cut(ns))
	check("finished", c.SumAt(when.Add(-c.window.Slot)), m.finished(ns))
	for _, span := range []int64{1, m.slot, m.slot + 1, m.span/2 + 1, m.span - 1, m.span} {
		if 0 < span && span <= m.span {
			got, err := c.CountAt(when, time.Duration(span))
			check("CountAt", got.Lo, m.sum(ns, span))
			if err != nil || got.Estimate < got.Lo || got.Estimate > got.Hi {
				t.Errorf("CountAt of %d at %d: %+v, %v", span, ns, got, err)
			}
		}
	}
	if est := c.EstimateAt(when); est < lo || est > hi {
		t.Errorf("estimate %d is not from %d to %d", est, lo, hi)
	}
	count, kept := c.SlotAt(when)
	check("SlotAt", count, m.inSlot(m.slotOf(ns)))
	if kept != (!m.any || m.slotOf(ns) >= m.newest-m.slots()) {
		t.Errorf("SlotAt at %d: kept %t", ns, kept)
	}
	compareSlots(t, c, m, ns)
	if eventTimes && m.saturated == 0 && ns >= m.latest() {
		if truth := uint64(m.truth(ns)); truth < lo || truth > hi {
			t.Errorf("at %d the count is %d, but the bounds are %d and %d", ns, truth, lo, hi)
		}
	}
	now := ns
	if m.any {
		now = max(ns, m.newest*m.slot)
	}
	check("live sum", c.sum(moment{ns, true}, 0), m.sum(now, m.span))
}

func compareSlots(t *testing.T, c *Counter, m *model, ns int64) {
	t.Helper()
	s := m.slotOf(ns) - m.slots() + 1
	for start, count := range c.SlotsAt(time.Unix(0, ns)) {
		if start.UnixNano() != s*m.slot || count != uint64(m.inSlot(s)) {
			t.Errorf("SlotsAt(%d): %d at %d, want %d at %d", ns, count, start.UnixNano(), m.inSlot(s), s*m.slot)
		}
		s++
	}
	if s != m.slotOf(ns)+1 {
		t.Errorf("SlotsAt(%d) ended before slot %d", ns, s)
	}
}
