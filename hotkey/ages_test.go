package hotkey_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
)

// agesAreKept has a detector with little memory count reports of events up to maxAge old,
// among many keys that come once, so that keys are removed and come back. At each edge
// there must be the threshold of events in the span and widen before it, and no more
// events in the span than the upper bound.
func agesAreKept(seed uint64, threshold int, maxAge, widen time.Duration) error {
	const span = 2 * time.Second
	rnd := rand.New(rand.NewPCG(seed, 3))
	r := hotkey.Rule{Name: "r", Key: match.MustKey("path"), Threshold: uint64(threshold), Span: span, Hold: time.Millisecond}
	d, err := hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: 1 << 20})
	if err != nil {
		return err
	}
	events := windowtest.Keys[string]{}
	now := time.Unix(1e9, 0)
	edges := 0
	for range 8000 {
		now = now.Add(time.Duration(rnd.IntN(4)) * time.Millisecond)
		under(d, "r").AddAt(now, fmt.Sprint("cold", rnd.Uint64()), 1)
		key, n := fmt.Sprint("k", rnd.IntN(150)), 1+rnd.IntN(threshold/2+1)
		at := now.Add(-time.Duration(rnd.Int64N(int64(maxAge))))
		events.Of(key).Add(at.UnixNano(), uint64(n))
		edge, hot, err := under(d, "r").AddAt(at, key, uint64(n))
		if !hot || err != nil {
			continue
		}
		edges++
		in := func(long, slot time.Duration) uint64 {
			return events.Of(key).In(edge.Time.Add(slot).UnixNano(), int64(long+slot))
		}
		slot := time.Duration(0) // an event that is earlier than its slot is counted when the slot begins
		if threshold > limit.SlidingExact {
			slot = span / 60
		}
		if got := in(span+widen, slot); got < edge.Lo || edge.Lo < uint64(threshold) {
			return fmt.Errorf("seed %d: %s is hot with %d events in %v; the lower bound is %d, the threshold %d", seed, key, got, span+widen, edge.Lo, threshold)
		}
		if got := in(span, 0); got > edge.Hi {
			return fmt.Errorf("seed %d: %s has %d events in the span; the upper bound is %d", seed, key, got, edge.Hi)
		}
	}
	if edges < 10 {
		return fmt.Errorf("seed %d: only %d edges", seed, edges)
	}
	return nil
}

// A late event stays counted longer by at most its lateness.
func TestAgesOfReports(t *testing.T) {
	seed := randtest.Seed(t)
	thresholds := []int{5, 200, 2, 100}
	switch {
	case testing.Short():
		thresholds = thresholds[:1]
	}
	for i, threshold := range thresholds {
		for _, age := range []time.Duration{50 * time.Millisecond, 1900 * time.Millisecond} {
			if err := agesAreKept(seed+uint64(i), threshold, age, age); err != nil {
				t.Errorf("threshold %d, ages up to %v: %v", threshold, age, err)
			}
		}
	}
	// The control: with ages of 1.9 s, the span alone does not have the events.
	if agesAreKept(1, 5, 1900*time.Millisecond, 0) == nil {
		t.Error("the test does not see that events are counted later than they were")
	}
}
