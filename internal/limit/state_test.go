package limit_test

import (
	"math"
	"testing"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestStateHasAll charges counters of each kind, with and without memory for slots: the state has all that
// is used. Package latelyredis tests that a store goes on from it.
func TestStateHasAll(t *testing.T) {
	rnd := randtest.New(t)
	slots := 0
	for kind := limit.Sliding; kind <= limit.InFlight; kind++ {
		for _, memory := range []int64{0, math.MaxInt64 / 2} {
			for range 50 {
				c := someConfig(rnd, kind)
				c.Resolution = 0
				m, err := limit.New(c)
				if err != nil {
					t.Fatal(err)
				}
				s, now, span := subjectOf(m, keytable.NewBudget(memory)), int64(1e18), max(int64(c.Span), 1e9)
				for range 60 {
					now += rnd.Int64N(span / 10)
					s.advance(now)
					s.charge(now, rnd.Uint64N(3))
					state, ok := s.State(s.w, s.b, now)
					if used := s.used(now); ok != (used > 0) || ok && sumOf(c, &state, now) < used {
						t.Fatalf("%+v: %d are used, and the state is %+v, %v", c, used, state, ok)
					}
					if memory == 0 && kind == limit.Sliding && !c.Exact() && state.Counts != nil {
						slots++
						if state.Counts[0] == 0 {
							t.Fatalf("%+v", state)
						}
					}
				}
			}
		}
	}
	if slots == 0 {
		t.Error("no sliding window had two slots")
	}
}

// sumOf returns how much a state has.
func sumOf(c limit.Config, s *limit.State, now int64) (sum uint64) {
	for _, count := range s.Counts {
		sum += count
	}
	if sum += uint64(len(s.Times)) + s.Count; sum == 0 && s.Ends >= now {
		drains := float64(s.Ends-now)*float64(c.N) + float64(s.Rest)
		sum = uint64(math.Ceil(drains/float64(c.Span) + 1e-6))
	}
	return sum
}
