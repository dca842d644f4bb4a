package window

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// logModel is what Sums is documented to be: a list of all
// amounts, gone through from beginning to end for every answer, in arithmetic
// that does not round.
type logModel struct {
	span, slot, ahead int64
	amounts           []logAmount
	newest            int64 // slot
	any, hasPending   bool
	pending           int64
	late, future      uint64
}

type logAmount struct {
	slot int64
	i    int
	n    *big.Int
}

func (m *logModel) slotOf(t int64) int64 {
	s := t / m.slot
	for s*m.slot > t {
		s--
	}
	return s
}

func (m *logModel) oldest() int64 { return m.newest - m.span/m.slot }

func (m *logModel) addAt(t int64, i int, n *big.Int) bool {
	s := m.slotOf(t)
	if m.any && m.ahead > 0 && s > m.newest && t-(m.newest+1)*m.slot >= m.ahead {
		if !m.hasPending || t-m.pending > m.span || m.pending-t > m.span {
			m.hasPending, m.pending = true, t
			m.future++
			return false
		}
	}
	if m.any && s < m.oldest() {
		m.late++
		return false
	}
	m.count(s, i, n)
	return true
}

func (m *logModel) addLive(now int64, i int, n *big.Int) {
	s := m.slotOf(now)
	if m.any && s <= m.oldest() {
		s = m.newest
	}
	m.count(s, i, n)
}

func (m *logModel) count(s int64, i int, n *big.Int) {
	if !m.any || s > m.newest {
		m.any, m.newest = true, s
	}
	m.amounts = append(m.amounts, logAmount{s, i, n})
}

// sum adds up sum i of the slots from first to last that are still kept.
func (m *logModel) sum(i int, first, last int64) *big.Int {
	sum := new(big.Int)
	for _, a := range m.amounts {
		if a.i == i && a.slot >= max(first, m.oldest()) && a.slot <= last {
			sum.Add(sum, a.n)
		}
	}
	return sum
}

// inside is the first slot that begins after t-span.
func (m *logModel) inside(t, span int64) int64 { return m.slotOf(t-span) + 1 }

// cut is whether the slot before that has times after t-span.
func (m *logModel) cut(t int64) bool { return (t-m.span+1)%m.slot != 0 }

// logStep is the next time of a random walk that goes back and forth, rests,
// and jumps to where something changes.
func (m *logModel) logStep(rnd *rand.Rand, t int64) int64 {
	switch rnd.IntN(16) {
	case 0, 1, 2, 3:
		return t + rnd.Int64N(m.slot)
	case 4, 5:
		return t + m.slot
	case 6:
		return m.slotOf(t)*m.slot + m.slot - 1
	case 7, 8:
		return t - rnd.Int64N(m.slot) - 1
	case 9:
		return t - rnd.Int64N(m.span+m.slot)
	case 10:
		return t + rnd.Int64N(m.span+m.slot)
	case 11:
		return t + rnd.Int64N(8*m.span)
	case 12:
		return m.oldest()*m.slot - rnd.Int64N(2) // the edge of what is late
	case 13:
		return (m.newest+1)*m.slot + m.ahead - rnd.Int64N(2) // the edge of what is future
	}
	return t
}

var sumsAmounts = []int64{0, 1, 1, -1, 2, -5, 1999, -1999, 1 << 32, -1 << 32, 1 << 40, -1 << 40}

// TestSumsModel holds every verb of Sums against the model, in random sequences.
func TestSumsModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for seq := range sumsSequences() {
		w := randomWindow(rnd, seq%3 == 0)
		k := 1 + rnd.IntN(3)
		s := mustSums(t, w, k)
		m := &logModel{span: int64(w.Span), slot: int64(w.Slot), ahead: int64(w.Ahead)}
		for at := range m.walk(rnd) {
			i := rnd.IntN(k)
			n := sumsAmounts[rnd.IntN(len(sumsAmounts))]
			exact := big.NewInt(n)
			switch rnd.IntN(4) {
			case 0:
				m.compare(t, s, k, at)
			case 1:
				s.addLive(at, i, n)
				m.addLive(at, i, exact)
			default:
				if got, want := s.AddAt(time.Unix(0, at), i, n), m.addAt(at, i, exact); got != want {
					t.Errorf("AddAt(%d, %d, %d) = %t, want %t", at, i, n, got, want)
				}
			}
			if t.Failed() {
				t.Fatalf("window %+v, sequence %d", w, seq)
			}
		}
		if s.Stats().Late != m.late || s.Stats().Future != m.future || s.Stats().Saturated != 0 {
			t.Fatalf("%+v: late %d, future %d, saturated %d; want %d, %d, 0", w, s.Stats().Late, s.Stats().Future, s.Stats().Saturated, m.late, m.future)
		}
	}
}

func sumsSequences() int {
	switch {
	case longTests():
		return 1_000_000
	case testing.Short():
		return 200
	}
	return 2000
}

// walk yields the times of a sequence.
func (m *logModel) walk(rnd *rand.Rand) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		at := rnd.Int64N(4e18) - 2e18
		for range 60 {
			next := m.logStep(rnd, at)
			if !m.any && (next > 3e18 || next < -3e18) {
				next = at
			}
			if at = next; !yield(at) {
				return
			}
		}
	}
}

// toInt returns x as an int64, or the nearest.
func toInt(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}

func (m *logModel) compare(t *testing.T, s *Sums, k int, at int64) {
	t.Helper()
	when, last := time.Unix(0, at), m.slotOf(at)
	check := func(verb string, i int, got int64, want *big.Int) {
		t.Helper()
		if got != toInt(want) {
			t.Errorf("%s of sum %d at %d: %d, want %d", verb, i, at, got, toInt(want))
		}
	}
	all := s.AppendSumsAt(when, nil)
	for i := range k {
		first := m.inside(at, m.span)
		lo := m.sum(i, first, last)
		check("SumAt", i, s.SumAt(when, i), lo)
		check("AppendSumsAt", i, all[i], lo)
		hi := lo
		if m.cut(at) {
			hi = m.sum(i, first-1, last)
		}
		if lo.Cmp(hi) > 0 {
			lo, hi = hi, lo
		}
		gotLo, gotHi := s.BoundsAt(when, i)
		check("lo", i, gotLo, lo)
		check("hi", i, gotHi, hi)
		slot := m.inside(at, m.span)
		for start, got := range s.SlotsAt(when, i) {
			check("SlotsAt", i, got, m.sum(i, slot, slot))
			if start.UnixNano() != slot*m.slot {
				t.Errorf("slot %d starts at %d, want %d", slot, start.UnixNano(), slot*m.slot)
			}
			slot++
		}
		if slot != last+1 {
			t.Errorf("SlotsAt ended before slot %d, want %d", slot, last+1)
		}
	}
	m.compareLive(t, s, at, check)
}

func (m *logModel) compareLive(t *testing.T, s *Sums, at int64, check func(string, int, int64, *big.Int)) {
	t.Helper()
	now := at
	if m.any {
		now = max(now, m.newest*m.slot)
	}
	want := m.sum(0, m.inside(now, m.span), m.slotOf(now))
	check("live sum", 0, s.sum(moment{at, true}, 0), want)
}
