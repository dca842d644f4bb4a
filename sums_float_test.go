package lately

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func mustFloatSums(t testing.TB, w Window, names ...string) *FloatSums {
	t.Helper()
	s, err := NewFloatSums(w, names...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFloatSumsModel holds FloatSums to the error it promises, against sums in
// arithmetic that does not round, and to the same slots as the model.
func TestFloatSumsModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 0))
	for seq := range sumsSequences() / 2 {
		w := randomWindow(rnd, seq%3 == 0)
		s := mustFloatSums(t, w, "in", "out")
		m := &logModel{span: int64(w.Span), slot: int64(w.Slot), ahead: int64(w.Ahead)}
		for at := range m.walk(rnd) {
			i, x := rnd.IntN(2), randomFloat(rnd)
			exact := new(big.Float).SetPrec(logPrecision).SetFloat64(x)
			switch rnd.IntN(4) {
			case 0:
				m.compareFloat(t, s, at)
			case 1:
				s.addLive(at, i, x)
				m.addLive(at, i, exact)
			default:
				if got, want := s.AddAt(time.Unix(0, at), i, x), m.addAt(at, i, exact); got != want {
					t.Errorf("AddAt(%d, %d, %g) = %t, want %t", at, i, x, got, want)
				}
			}
			if t.Failed() {
				t.Fatalf("window %+v, sequence %d", w, seq)
			}
		}
		if s.Late() != m.late || s.Future() != m.future || s.Saturated() != 0 || s.Invalid() != 0 {
			t.Fatalf("%+v: late %d, future %d, saturated %d, invalid %d; want %d, %d, 0, 0", w, s.Late(), s.Future(), s.Saturated(), s.Invalid(), m.late, m.future)
		}
	}
}

// randomFloat is an amount of money, or a number of any size.
func randomFloat(rnd *rand.Rand) float64 {
	x := float64(rnd.IntN(1_000_000)) / 100
	if rnd.IntN(3) == 0 {
		x = math.Ldexp(rnd.Float64(), rnd.IntN(400)-200)
	}
	if rnd.IntN(2) == 0 {
		return -x
	}
	return x
}

// wantClose wants got to be the sum of slots first to last within the promised
// error.
func (m *logModel) wantClose(t *testing.T, verb string, got float64, i int, first, last int64) {
	t.Helper()
	want, size, n := m.sum(i, first, last), new(big.Float).SetPrec(logPrecision), 0.0
	for _, a := range m.amounts {
		if a.i == i && a.slot >= max(first, m.oldest()) && a.slot <= last {
			size.Add(size, new(big.Float).Abs(a.n))
			n++
		}
	}
	const u = 1.0 / (1 << 53)
	bound := new(big.Float).Mul(new(big.Float).Abs(want), big.NewFloat(u))
	bound.Add(bound, size.Mul(size, big.NewFloat(2*n*n*u*u)))
	off := new(big.Float).SetPrec(logPrecision).SetFloat64(got)
	if off.Abs(off.Sub(off, want)); off.Cmp(bound) > 0 {
		t.Errorf("%s of sum %d: %g, want %g; off by %g, promised is %g at most", verb, i, got, want, off, bound)
	}
}

func (m *logModel) compareFloat(t *testing.T, s *FloatSums, at int64) {
	t.Helper()
	when, last := time.Unix(0, at), m.slotOf(at)
	first := m.inside(at, m.span)
	all := s.AppendSumsAt(when, nil)
	for i := range 2 {
		m.wantClose(t, "SumAt", s.SumAt(when, i), i, first, last)
		m.wantClose(t, "AppendSumsAt", all[i], i, first, last)
		span := max(1, m.span/2)
		got, err := s.SumLastAt(when, i, time.Duration(span))
		if m.wantClose(t, "SumLastAt", got, i, m.inside(at, span), last); err != nil {
			t.Error(err)
		}
		lo, hi := s.BoundsAt(when, i)
		inside, outer := all[i], hi
		if hi == inside {
			outer = lo
		}
		if inside != lo && inside != hi {
			t.Errorf("neither of the bounds %g and %g of sum %d is the sum %g", lo, hi, i, inside)
		}
		if m.cut(at) {
			m.wantClose(t, "BoundsAt", outer, i, first-1, last)
		}
		slot := first
		for _, got := range s.SlotsAt(when, i) {
			m.wantClose(t, "SlotsAt", got, i, slot, slot)
			slot++
		}
	}
	if m.any && at >= m.newest*m.slot {
		m.wantClose(t, "live sum", s.sum(at, m.span, true, 0), 0, first, last)
	}
}

// A thousand amounts of a cent are ten, in any order with what cancels out, and
// from any number of goroutines; added up as float64 they are not.
func TestFloatSumsRounding(t *testing.T) {
	amounts := []float64{1e10, -1e10, 3e7, -3e7}
	for range 1000 {
		amounts = append(amounts, 0.01)
	}
	rnd := rand.New(rand.NewPCG(newSeed(t), 0))
	at := time.Unix(1000, 0)
	plainRight := true
	for round := range 200 {
		rnd.Shuffle(len(amounts), func(i, j int) { amounts[i], amounts[j] = amounts[j], amounts[i] })
		s := mustFloatSums(t, Last(time.Minute), "in", "out")
		plain := 0.0
		var wg sync.WaitGroup
		for part := range slices.Chunk(amounts, len(amounts)/(1+round%4)) {
			wg.Go(func() {
				for i, x := range part {
					if i%8 == 0 {
						s.AddAt(at.Add(time.Duration(i)*time.Millisecond), 0, x)
					} else {
						s.addLive(at.UnixNano(), 0, x)
					}
				}
			})
		}
		wg.Wait()
		for _, x := range amounts {
			plain += x
		}
		plainRight = plainRight && plain == 10
		if got := s.SumAt(at.Add(10*time.Second), 0); got != 10 {
			t.Errorf("round %d: sum %.17g, want 10", round, got)
		}
	}
	if plainRight {
		t.Error("the control, plain addition, is exact: the test proves nothing")
	}
}

func TestFloatSumsInvalid(t *testing.T) {
	s := mustFloatSums(t, Last(time.Minute), "in")
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if s.Add(0, x) || s.AddAt(time.Now(), 0, x) {
			t.Errorf("%v was added", x)
		}
	}
	if !s.Add(0, 1.5) || s.Sum(0) != 1.5 || s.Invalid() != 6 {
		t.Errorf("sum %v, invalid %d; want 1.5, 6", s.Sum(0), s.Invalid())
	}
}

func TestFloatSumsSaturate(t *testing.T) {
	s := mustFloatSums(t, Window{Span: 4 * time.Second, Slot: time.Second}, "in", "out")
	at := time.Unix(1000, 0)
	for range 2 {
		s.AddAt(at, 0, math.MaxFloat64)
		s.AddAt(at, 1, -math.MaxFloat64)
	}
	if s.SumAt(at, 0) != math.MaxFloat64 || s.SumAt(at, 1) != -math.MaxFloat64 || s.Saturated() != 2 {
		t.Errorf("sums %g and %g, saturated %d", s.SumAt(at, 0), s.SumAt(at, 1), s.Saturated())
	}
	// Out of range on the way, but not at the end.
	s.AddAt(at.Add(time.Second), 0, math.MaxFloat64)
	s.AddAt(at.Add(2*time.Second), 0, -math.MaxFloat64)
	s.AddAt(at.Add(3*time.Second), 0, -math.MaxFloat64/2)
	if got := s.SumAt(at.Add(3*time.Second), 0); got != math.MaxFloat64/2 {
		t.Errorf("sum %g, want half the largest float64", got)
	}
	if got := s.NetAt(at, 0, 1); got != math.MaxFloat64 {
		t.Errorf("net %g, want the largest float64", got)
	}
	if got := s.NetAt(at, 0, 0); got != 0 {
		t.Errorf("net of a sum with itself is %g", got)
	}
}
