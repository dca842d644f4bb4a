package window

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// Steady traffic of 7,200 events in 24 h, of which Sum leaves out the oldest of the 60 slots: the estimate must be 7,200,
// at any time and in any span.
func TestTableEstimateOfSteadyTraffic(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const every = 12 * time.Second
	tb := mustTable(t, TableConfig{}, Last(24*time.Hour), Window{Span: time.Hour, Slot: 6 * time.Minute})
	start := time.Unix(1_700_000_000, 0)
	end := start.Add(48 * time.Hour)
	for at := start; !at.After(end); at = at.Add(every) {
		tb.AddAt(at, "steady", 1)
	}
	least := uint64(7200)
	for range 1000 {
		end = end.Add(every)
		tb.AddAt(end, "steady", 1)
		at := end.Add(time.Duration(rnd.Int64N(int64(every))))
		for _, span := range []time.Duration{24 * time.Hour, 7 * time.Hour, time.Hour, 25 * time.Minute} {
			want := uint64(span / every)
			got, err := tb.CountAt(at, "steady", span)
			if err != nil || got.Estimate < want-2 || got.Estimate > want+2 {
				t.Fatalf("estimate of %v at %v: %+v, %v; want %d, 2 more or less", span, at.Sub(start), got, err, want)
			}
			top, err := tb.TopAt(at, 1, span)
			if err != nil || len(top) != 1 || top[0].Count != got || got.Lo > got.Estimate || got.Hi < got.Estimate {
				t.Fatalf("top of %v: %+v, %v; want %+v", span, top, err, got)
			}
			if r, err := tb.ReadAt(at, "steady").Count(span); r != got || err != nil {
				t.Fatalf("reading of %v: %+v, %v; want %+v", span, r, err, got)
			}
		}
		if got := tb.EstimateAt(at, "steady"); got < 7198 || got > 7202 {
			t.Fatalf("estimate %d, want 7200", got)
		}
		least = min(least, tb.SumAt(at, "steady"))
	}
	if least > 7081 {
		t.Errorf("the lower bound is %d: with these windows the estimate would pass without a correction", least)
	}
	for _, span := range []time.Duration{0, -1, 24*time.Hour + 1} {
		if n, err := tb.Count("steady", span); n != (Count{}) || err == nil {
			t.Errorf("Count of %v: %+v, %v; want an error", span, n, err)
		}
		if n, err := tb.CountAt(end, "steady", span); n != (Count{}) || err == nil {
			t.Errorf("CountAt of %v: %+v, %v; want an error", span, n, err)
		}
		if n, err := tb.ReadAt(end, "steady").Count(span); n != (Count{}) || err == nil {
			t.Errorf("Reading.Count of %v: %+v, %v; want an error", span, n, err)
		}
	}
}

// Uniform traffic of one event each 10 ms, in slots of a minute: the estimate for a span shorter than a slot must match it,
// wherever in a slot the span ends, and so must a rate.
func TestEstimateOfLessThanASlot(t *testing.T) {
	rnd := randtest.New(t)
	const every = 10 * time.Millisecond
	window := Window{Span: time.Hour, Slot: time.Minute}
	tb := mustTable(t, TableConfig{}, window)
	c := must.Get(NewCounter(window))(t)
	at := time.Unix(1_700_000_000, 0)
	for range 30_000 {
		at = at.Add(every)
		tb.AddAt(at, "k", 1)
		c.AddAt(at, 1)
		if rnd.IntN(20) > 0 || at.Before(time.Unix(1_700_000_160, 0)) {
			continue
		}
		for _, span := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second, 59 * time.Second} {
			want := uint64(span / every)
			got, err := tb.CountAt(at, "k", span)
			if err != nil || got.Estimate+1 < want || got.Estimate > want+1 {
				t.Fatalf("%v in a slot, the count of %v is %+v, %v; want %d", at.Sub(at.Truncate(time.Minute)), span, got, err, want)
			}
			if rate, err := c.RateAt(at, span); err != nil || rate*span.Seconds() > float64(want)+1.5 || rate*span.Seconds() < float64(want)-1.5 {
				t.Fatalf("%v in a slot, the rate of %v is %v, %v; want 100", at.Sub(at.Truncate(time.Minute)), span, rate, err)
			}
		}
	}
}
