package limit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// An oldestTrial charges a counter one unit at a time, takes some back without naming which, and goes on, with a model of
// the result if some of those had never been charged.
type oldestTrial struct {
	limit.Config
	rnd    *rand.Rand
	s      *subject
	units  []int64 // when each was charged
	now    int64
	forced bool // beyond the limit, too
}

func newOldestTrial(t testing.TB, rnd *rand.Rand, c limit.Config) *oldestTrial {
	return &oldestTrial{Config: c, rnd: rnd, s: newSubject(t, c)}
}

func (tr *oldestTrial) level() bool {
	return tr.Algorithm == limit.GCRA || tr.Algorithm == limit.LeakyBucket
}

// spills reports whether the kind changes from times to slots, and so may keep more exactly what was never charged.
func (tr *oldestTrial) spills() bool {
	return tr.Algorithm == limit.Sliding && tr.N > limit.SlidingExact
}

// arrive sends n arrivals; it charges the allowed ones, and the models with them.
func (tr *oldestTrial) arrive(n int, models []*windowtest.Limit, check func()) {
	base := tr.now
	first, begun := int64(0), false
	arrivals(tr.rnd, max(int64(tr.Span), 1e6), 1, n, func(t int64) bool {
		if !begun {
			first, begun = t, true
		}
		tr.now = base + t - first
		fits := tr.s.advance(tr.now) < tr.s.Most()
		if tr.rnd.IntN(3) > 0 && (fits || tr.forced) {
			tr.s.charge(tr.now, 1)
			tr.units = append(tr.units, tr.now)
			for _, m := range models {
				m.Charge(tr.now, 1)
			}
		}
		check()
		return true
	})
}

// counted returns which units are still counted, by the definition of the kind.
func (tr *oldestTrial) counted() (counted []int) {
	if tr.level() || tr.spills() || tr.Algorithm == limit.Fixed {
		for i := len(tr.units) - int(tr.s.used(tr.now)); i < len(tr.units); i++ {
			counted = append(counted, i)
		}
		return counted
	}
	for i, at := range tr.units {
		m := windowtest.New(tr.Config)
		if m.Charge(at, 1); m.Used(tr.now) > 0 {
			counted = append(counted, i)
		}
	}
	return counted
}

// without returns the model of the units but those.
func (tr *oldestTrial) without(gone []int) *windowtest.Limit {
	m := windowtest.New(tr.Config)
	for i, at := range tr.units {
		if !slices.Contains(gone, i) {
			m.Charge(at, 1)
		}
	}
	return m
}

// run refunds once, and returns an error about the result, or nil.
func (tr *oldestTrial) run(refund func(s *subject, t int64, cost uint64) uint64) (wrong string) {
	tr.now = tr.rnd.Int64N(4e12) - 2e12
	tr.arrive(1+tr.rnd.IntN(60), nil, func() {})
	before := tr.s.advance(tr.now)
	counted := tr.counted()
	cost := tr.rnd.Uint64N(uint64(len(counted)) + 3)
	if tr.Algorithm == limit.Fixed && len(counted) > 0 {
		counted = counted[1:] // the first one's end stays
		cost = tr.rnd.Uint64N(uint64(len(counted)) + 1)
	}
	taken := refund(tr.s, tr.now, cost)
	if want := min(cost, uint64(len(counted))); taken > want || taken < want && !tr.forced {
		return fmt.Sprintf("%d of %d taken back, %d were counted", taken, cost, len(counted))
	}
	if used := tr.s.used(tr.now); used > before || before-used > taken {
		return fmt.Sprintf("%d used, before %d, %d taken back", used, before, taken)
	}
	n := int(taken)
	subsets := [][]int{counted[:n], counted[len(counted)-n:], slices.Clone(counted)}
	tr.rnd.Shuffle(len(counted), func(i, j int) { subsets[2][i], subsets[2][j] = subsets[2][j], subsets[2][i] })
	subsets[2] = subsets[2][:n]
	var models []*windowtest.Limit
	for _, gone := range subsets {
		models = append(models, tr.without(gone))
	}
	var kept windowtest.Charges
	for i, at := range tr.units {
		if !slices.Contains(subsets[0], i) {
			kept.Add(at, 1)
		}
	}
	slots := func() uint64 { // used if all that was not taken back had been counted in slots
		width := models[0].Width
		return kept.Sum(func(at int64) bool { return (windowtest.FloorDiv(at, width)+1)*width-1 > tr.now-int64(tr.Span) })
	}
	charged := len(tr.units)
	check := func() {
		used := tr.s.advance(tr.now)
		for ; charged < len(tr.units); charged++ {
			kept.Add(tr.units[charged], 1)
		}
		if tr.spills() && used > slots() {
			wrong = fmt.Sprintf("at %d, %d used; without the oldest, %d in slots", tr.now, used, slots())
		}
		for i, m := range models {
			switch want := min(m.Used(tr.now), tr.s.Most()); {
			case wrong != "":
			case used < want:
				wrong = fmt.Sprintf("at %d, %d used; without units %v of %v, %d: a credit", tr.now, used, subsets[i], tr.units, want)
			case i == 0 && used != want && !tr.level() && !tr.spills() && !tr.forced:
				wrong = fmt.Sprintf("at %d, %d used; without the oldest, %d", tr.now, used, want)
			}
		}
	}
	check()
	tr.arrive(40, models, check)
	return wrong
}

// TestRefundOldest takes back without the time of the charge, and compares the used amount from then on with the amount if
// the oldest, the newest or any others of the counted events had never been charged: never less, and equal for the oldest.
func TestRefundOldest(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 60
	if longTests() {
		rounds = 5000
	}
	for range rounds {
		n := []uint64{1, 2, 5, 64, 65, 300}[rnd.IntN(6)]
		span := []time.Duration{time.Millisecond, time.Second, 997 * time.Millisecond}[rnd.IntN(3)]
		for _, c := range allKinds(n, span) {
			if c.Algorithm == limit.Calendar {
				c.Span = 0
			}
			tr := newOldestTrial(t, rnd, c)
			tr.forced = rnd.IntN(3) == 0 && !tr.level() && c.Algorithm != limit.Fixed
			if wrong := tr.run(func(s *subject, t int64, cost uint64) uint64 { return s.RefundOldest(s.w, s.b, t, cost) }); wrong != "" {
				t.Fatalf("%+v, forced %v: %s", c, tr.forced, wrong)
			}
		}
	}
}

// TestRefundNewestIsCaught is the control: a log that gives back the newest, a
// bucket that gives back whole units although the oldest has drained in part.
func TestRefundNewestIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	newest := func(s *subject, _ int64, cost uint64) (taken uint64) {
		for taken < cost && s.b.Len(s.w) > 0 {
			taken += uint64(s.b.Remove(s.w, s.b.Newest(s.w), 1))
		}
		return taken
	}
	whole := func(s *subject, t int64, cost uint64) uint64 {
		before := s.used(t)
		s.refund(t, t, cost)
		return min(cost, before)
	}
	for _, c := range []struct {
		limit.Config
		refund func(*subject, int64, uint64) uint64
	}{
		{limit.Config{Algorithm: limit.Exact, N: 5, Span: time.Second}, newest},
		{limit.Config{Algorithm: limit.GCRA, N: 5, Span: time.Second}, whole},
	} {
		caught := ""
		for i := 0; caught == "" && i < 500; i++ {
			caught = newOldestTrial(t, rnd, c.Config).run(c.refund)
		}
		if caught == "" {
			t.Errorf("%v: a refund that makes credit is not noticed", c.Algorithm)
		}
	}
}

// TestRefundOldestOfCut checks that a count which is only a lower bound is not
// refunded.
func TestRefundOldestOfCut(t *testing.T) {
	for _, c := range []limit.Config{
		{Algorithm: limit.Exact, N: 5, Span: time.Second},
		{Algorithm: limit.Sliding, N: 150, Span: time.Second},
		{Algorithm: limit.TwoBucket, N: 100, Span: time.Second},
		{Algorithm: limit.Fixed, N: 5, Span: time.Second},
		{Algorithm: limit.Calendar, N: 5, Period: limit.Day},
	} {
		s := newSubject(t, c)
		s.advance(0)
		s.charge(0, math.MaxUint64)
		if n := s.RefundOldest(s.w, s.b, 0, 3); n != 0 || s.used(0) < s.Most() {
			t.Errorf("%v: %d taken back of a count that was cut, %d used", c.Algorithm, n, s.used(0))
		}
	}
	const second = int64(time.Second)
	two := newSubject(t, limit.Config{Algorithm: limit.TwoBucket, N: 100, Span: time.Second})
	two.advance(0)
	two.charge(0, math.MaxUint64)
	two.advance(second)
	two.charge(second, 4)
	if n := two.RefundOldest(two.w, two.b, second, 10); n != 0 {
		t.Errorf("%d taken back after a bucket that is full", n)
	}
	if two.advance(2*second - 1); two.RefundOldest(two.w, two.b, 2*second-1, 3) != 3 || two.used(2*second-1) != 1 {
		t.Errorf("%d of 4 used after 3 were taken back, when the bucket that is full has left", two.used(2*second-1))
	}
	s := newSubject(t, limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Minute})
	s.advance(0)
	s.charge(0, 3)
	s.advance(int64(time.Second))
	s.charge(int64(time.Second), math.MaxUint64)
	s.advance(int64(2 * time.Second))
	s.charge(int64(2*time.Second), 4)
	if n := s.RefundOldest(s.w, s.b, int64(2*time.Second), 10); n != 3 {
		t.Errorf("%d taken back, want the 3 before the slot that is full", n)
	}
}

// TestBucket compares a Bucket with a Counter of the same limit, and changes the limits of one bucket: its level stays,
// rounded up to less than a nanosecond.
func TestBucket(t *testing.T) {
	rnd := randtest.New(t)
	for range 300 {
		n, burst := 1+rnd.Uint64N(50), 1+rnd.Uint64N(50)
		span := time.Duration(1+rnd.Int64N(5000)) * time.Millisecond
		s := newSubject(t, limit.Config{Algorithm: limit.GCRA, N: n, Span: span, Burst: burst})
		b, ok := limit.NewBucket(n, burst, span)
		if !ok {
			t.Fatal("no bucket")
		}
		w := make([]uint64, limit.BucketWords)
		arrivals(rnd, int64(span), 1, 100, func(now int64) bool {
			used := b.Used(w, now)
			if want := s.advance(now); used != want || b.Until(w, now, 0) != time.Duration(s.reset(now)) {
				t.Fatalf("%d and %d in %v: %d used, want %d", n, burst, span, used, want)
			}
			cost := 1 + rnd.Uint64N(burst)
			if used > burst-cost {
				if got, want := b.Until(w, now, burst-cost), time.Duration(s.wait(now, cost)); got != want {
					t.Fatalf("%d and %d in %v: wait %v, want %v", n, burst, span, got, want)
				}
				return true
			}
			b.Charge(w, now, cost)
			s.charge(now, cost)
			return true
		})
	}
	b, _ := limit.NewBucket(7, 7, time.Second)
	w, was := make([]uint64, limit.BucketWords), uint64(0)
	b.Charge(w, 0, 1) // 1/7 s: 142,857,142 6/7 ns
	for _, n := range []uint64{7, 14, 3, 1} {
		b, _ = limit.NewBucket(n, 7, time.Second)
		b.Scale(w, was)
		if got := b.Until(w, 0, 0); got != 142_857_143 {
			t.Errorf("from %d to %d in a second, empty in %d ns", was, n, got)
		}
		was = n
	}
	most := uint64(limit.MaxSpan / time.Second)
	for burst, want := range map[uint64]bool{1: true, most: true, most + 1: false, math.MaxUint64: false} {
		if _, ok := limit.NewBucket(1, burst, time.Second); ok != want {
			t.Errorf("NewBucket with burst %d: %v", burst, ok)
		}
	}
}
