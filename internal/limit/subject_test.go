package limit_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// longTests reports whether the tests that have a long form are to run it; it
// takes minutes:
//
//	LATELY_LONG=1 go test -timeout 1h ./internal/limit
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

// A subject is a counter with the words of one record.
type subject struct {
	limit.Counter
	w []uint64
	b *keytable.Blocks
}

func newSubject(t testing.TB, c limit.Config) *subject {
	t.Helper()
	m := must.Get(limit.New(c))(t)
	return subjectOf(m, keytable.NewBudget(math.MaxInt64/2))
}

func subjectOf(m limit.Counter, budget *keytable.Budget) *subject {
	s := &subject{Counter: m}
	s.w = make([]uint64, m.Words())
	s.b = m.Blocks(budget)
	return s
}

func (s *subject) advance(t int64) uint64 { return s.Advance(s.w, s.b, t) }

func (s *subject) used(t int64) uint64 { return s.Used(s.w, s.b, t) }

func (s *subject) charge(t int64, cost uint64) {
	s.Reserve(s.w, s.b, cost)
	s.Charge(s.w, s.b, t, cost)
}

func (s *subject) refund(t, at int64, cost uint64) uint64 { return s.Refund(s.w, s.b, t, at, cost) }

func (s *subject) wait(t int64, cost uint64) int64 {
	return int64(s.Wait(s.w, s.b, t, s.Most(), cost))
}

func (s *subject) reset(t int64) int64 { return int64(s.Reset(s.w, s.b, t)) }

// take judges an event, charges it if it is allowed, and returns whether it was.
func (s *subject) take(t int64, cost uint64) bool {
	if used := s.advance(t); cost > s.Most()-min(used, s.Most()) {
		return false
	}
	s.charge(t, cost)
	return true
}

// copy returns a subject in the same state with words and blocks of its own.
func (s *subject) copy() *subject {
	c := subjectOf(s.Counter, keytable.NewBudget(math.MaxInt64/2))
	if !c.Carry(c.w, c.b, &s.Counter, s.w, s.b, 0) {
		panic("no memory")
	}
	return c
}

// allKinds are configurations of every kind with one N and Span.
func allKinds(n uint64, span time.Duration) []limit.Config {
	return []limit.Config{
		{Algorithm: limit.Sliding, N: n, Span: span},
		{Algorithm: limit.Exact, N: n, Span: span},
		{Algorithm: limit.TwoBucket, N: n, Span: span},
		{Algorithm: limit.GCRA, N: n, Span: span},
		{Algorithm: limit.LeakyBucket, N: n, Span: span, Burst: 2 * n},
		{Algorithm: limit.Fixed, N: n, Span: span},
		{Algorithm: limit.Calendar, N: n, Period: limit.Second},
		{Algorithm: limit.InFlight, N: n, Span: span},
	}
}

// arrivals yields n times that are multiples of resolution: bursts at one moment,
// pauses around the span's length and its slots', and steps of a nanosecond.
func arrivals(rnd *rand.Rand, span, resolution int64, n int, yield func(t int64) bool) {
	t := rnd.Int64N(4e12) - 2e12 // either side of 1970
	for range n {
		switch rnd.IntN(40) {
		case 0:
			t += rnd.Int64N(3 * span)
		case 1:
			t += span
		case 2:
			t += span - 1
		case 3:
			t += span - rnd.Int64N(span/30+1)
		case 4:
			t += span / 60
		case 5:
			t = (t/span+1)*span - 1 // the end of a bucket
		case 6:
			t = (t/(span/60)+1)*(span/60) - 1 // the end of a slot
		case 7, 8, 9:
		case 10, 11:
			t++
		default:
			t += rnd.Int64N(span/40 + 1)
		}
		if !yield(windowtest.FloorDiv(t, resolution) * resolution) {
			return
		}
	}
}
