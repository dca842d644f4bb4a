package limit_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

func newDistinctSubject(t *testing.T, n uint64, budget *keytable.Budget) *subject {
	t.Helper()
	m := must.Get(limit.New(limit.Config{Algorithm: limit.Exact, Distinct: true, N: n, Span: time.Second}))(t)
	return subjectOf(m, budget)
}

// TestDistinct compares with a map of when each value came last.
func TestDistinct(t *testing.T) {
	rnd := randtest.New(t)
	for range 200 {
		n := 1 + rnd.Uint64N(40)
		budget := keytable.NewBudget(1 << 20)
		s := newDistinctSubject(t, n, budget)
		last, now := map[uint64]int64{}, int64(0)
		for range 400 {
			now += rnd.Int64N(int64(time.Second) / 8)
			maps.DeleteFunc(last, func(_ uint64, at int64) bool { return at <= now-int64(time.Second) })
			value := rnd.Uint64N(2 * n)
			if _, want := last[value]; s.HasValue(s.w, s.b, now, value) != want || s.used(now) != uint64(len(last)) {
				t.Fatalf("at %d of %d: value %d is counted: %v, of %d; the map has %v", now, n, value, !want, s.used(now), last)
			}
			if uint64(len(last)) == n && !slices.Contains(slices.Collect(maps.Keys(last)), value) {
				continue // the ban begins
			}
			if last[value] = now; !s.CountValue(s.w, s.b, now, value) {
				t.Fatal("no memory")
			}
			switch rnd.IntN(50) {
			case 0:
				s = s.copy()
			case 1:
				s = s.restored(t, now)
			}
			if wait := s.reset(now); wait != int64(time.Second) {
				t.Fatalf("the newest value leaves in %d", wait)
			}
		}
		if s.Clear(s.w, s.b); s.used(now) != 0 {
			t.Fatal("values are left")
		}
	}
}

// restored returns a subject that was written and read.
func (s *subject) restored(t *testing.T, now int64) *subject {
	t.Helper()
	to := subjectOf(s.Counter, keytable.NewBudget(1<<20))
	var state []byte
	w := snapshot.NewWriter(snapshot.Counts, now, func(c []byte) bool { state = slices.Clone(c); return true })
	w.EndHead()
	w.Buf = s.AppendState(w.Buf, s.w, s.b, now)
	w.Flush()
	_, r, _, err := snapshot.Open(state, snapshot.Counts)
	if err != nil {
		t.Fatal(err)
	}
	if to.ReadState(r, to.w, to.b, now, now); r.Failed() || r.Len() > 0 {
		t.Fatalf("%d values are not read", s.used(now))
	}
	return to
}

// TestDistinctWithoutMemory fills the budget: a value that is not counted does not replace another, and cleared values free
// their memory.
func TestDistinctWithoutMemory(t *testing.T) {
	budget := keytable.NewBudget(1)
	s := newDistinctSubject(t, 100, budget)
	counted := uint64(0)
	for v := range uint64(100) {
		if s.CountValue(s.w, s.b, int64(v), v) {
			counted++
		}
	}
	if counted == 0 || counted == 100 || s.used(100) != counted {
		t.Fatalf("%d of 100 values are counted, %d used", counted, s.used(100))
	}
	for v := range counted {
		if !s.HasValue(s.w, s.b, 100, v) {
			t.Errorf("value %d made way for one that was not counted", v)
		}
	}
}

// TestDistinctCarried keeps the newest values in a counter with a lower bound.
func TestDistinctCarried(t *testing.T) {
	budget := keytable.NewBudget(1 << 20)
	from, to := newDistinctSubject(t, 50, budget), newDistinctSubject(t, 5, budget)
	for v := range uint64(50) {
		from.CountValue(from.w, from.b, int64(v), v)
	}
	if !to.Carry(to.w, to.b, &from.Counter, from.w, from.b, 50) || to.used(50) != 5 || !to.HasValue(to.w, to.b, 50, 45) || to.HasValue(to.w, to.b, 50, 44) {
		t.Errorf("%d values are carried, want the newest 5", to.used(50))
	}
}
