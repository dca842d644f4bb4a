package hotkey_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
)

// A flood of keys that come once spends the budget: it is never exceeded, the keys
// that are busy become hot at the same events as without the flood, and no other key
// is hot.
func TestFloodWithinTheBudget(t *testing.T) {
	const budget, flood, busy = 1 << 20, 80_000, 20
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = 500, time.Minute, time.Second
	before := heap()
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: budget}))(t)
	alone := mustDetector(t, r)
	edges := 0
	for i := range flood {
		now := time.UnixMicro(int64(i) * 100)
		if _, hot := addKey(d, now, "r", fmt.Sprint("once ", i)); hot {
			t.Fatalf("event %d: a key that came once is hot", i)
		}
		name := fmt.Sprint("busy ", i%busy)
		edge, hot := addKey(d, now, "r", name)
		want, wantHot := addKey(alone, now, "r", name)
		if edge.Hi < want.Hi { // evicted keys may have been this one
			t.Fatalf("event %d of %s: at most %d, without the flood %d", i, name, edge.Hi, want.Hi)
		}
		if edge.Hi = want.Hi; hot != wantHot || edge != want {
			t.Fatalf("event %d of %s: %+v, %t; without the flood %+v, %t", i, name, edge, hot, want, wantHot)
		}
		if hot {
			edges++
		}
		if used := under(d, "r").Stats().Bytes; used > budget {
			t.Fatalf("event %d: %d bytes of %d", i, used, budget)
		}
	}
	stats := under(d, "r").Stats()
	if edges < 2*busy || stats.Evicted < flood/2 || stats.Keys < budget/400 || stats.Lost > 0 {
		t.Errorf("%d edges, %+v: want edges of all busy keys, and most others evicted", edges, stats)
	}
	if used := heap() - before - under(alone, "r").Stats().Bytes; used > budget*11/10 {
		t.Errorf("%d bytes are in use, of %d", used, budget)
	}
	runtime.KeepAlive(d)
	runtime.KeepAlive(alone)
}

// With more busy keys than memory for their times, a key may become hot too late, which Stats reports, but none too early.
func TestBudgetForFewTimes(t *testing.T) {
	const budget, keys = 256 << 10, 100
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold, r.Exact = 1000, time.Hour, time.Minute, true
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: budget}))(t)
	exact := mustDetector(t, r)
	early := 0
	for i := range 1200 * keys {
		key, now := fmt.Sprint("key ", i%keys), time.UnixMilli(int64(i))
		_, hot := addKey(d, now, "r", key)
		if _, want := addKey(exact, now, "r", key); hot && !want {
			early++
		}
		if used := under(d, "r").Stats().Bytes; used > budget {
			t.Fatalf("event %d: %d bytes of %d", i, used, budget)
		}
	}
	if early > 0 || under(d, "r").Stats().Lost == 0 {
		t.Errorf("%d edges too early, %+v", early, under(d, "r").Stats())
	}
}

// Goroutines flood a detector at its budget beside the events of one busy key, which becomes hot once.
func TestFloodConcurrently(t *testing.T) {
	const budget, goroutines, each = 512 << 10, 4, 5000
	r := goodRule(t)
	r.Threshold, r.Span, r.Hold = goroutines*each/2, time.Hour, time.Hour
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: budget}))(t)
	var edges atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range int64(each) {
				addKey(d, at(i), "r", fmt.Sprint(g, " ", i))
				if _, hot := addKey(d, at(i), "r", "busy"); hot {
					edges.Add(1)
				}
				if used := under(d, "r").Stats().Bytes; used > budget {
					t.Errorf("%d bytes of %d", used, budget)
				}
			}
		})
	}
	wg.Wait()
	if stats := under(d, "r").Stats(); edges.Load() != 1 || stats.Evicted == 0 {
		t.Errorf("%d edges, want 1; %+v", edges.Load(), stats)
	}
}

// The largest threshold of times is exact: the event after one fewer is not an edge, and the last one is.
func TestMaxExact(t *testing.T) {
	r := goodRule(t)
	r.Threshold, r.Span, r.Exact = limit.MaxLog, time.Hour, true
	d := mustDetector(t, r)
	for i := range int64(limit.MaxLog) {
		if _, hot := addKey(d, time.UnixMilli(i), "r", "k"); hot != (i == limit.MaxLog-1) {
			t.Fatalf("event %d: hot is %t", i+1, hot)
		}
	}
}

// Keys without an event in the span leave as others come, but for those that were hot.
func TestKeysExpire(t *testing.T) {
	r := goodRule(t) // 3 in 1 s
	r.Span = time.Second
	d := mustDetector(t, r)
	for range 3 {
		addKey(d, at(0), "r", "hot once")
	}
	for i := range int64(200_000) {
		addKey(d, at(i), "r", fmt.Sprint(i))
	}
	if stats := under(d, "r").Stats(); stats.Keys > 50_000 || stats.Evicted > 0 {
		t.Errorf("%+v: want the keys of some seconds, and none evicted", stats)
	}
	for i := range 3 {
		if edge, hot := addKey(d, at(200_000), "r", "hot once"); hot != (i == 2) || edge.First {
			t.Errorf("event %d: %+v, %t", i, edge, hot)
		}
	}
}
