package window

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/test/must"
)

func mustRollup(t testing.TB, config RollupConfig) *Rollup {
	t.Helper()
	r := must.Get(NewRollup(config))(t)
	return r
}

func TestNewRollupErrors(t *testing.T) {
	for _, c := range []struct {
		config RollupConfig
		want   string
	}{
		{RollupConfig{Spans: []time.Duration{time.Second, 0}}, "span 0s: must be from 1ms to"},
		{RollupConfig{Spans: []time.Duration{time.Second, 1500 * time.Microsecond}}, "span 1.5ms: must be whole milliseconds"},
		{RollupConfig{Spans: []time.Duration{MaxSpan + time.Millisecond}}, "must be from 1ms to"},
		{RollupConfig{Spans: []time.Duration{time.Hour, time.Second, time.Hour}}, "1h0m0s is given twice"},
		{RollupConfig{Spans: make([]time.Duration, maxRollupSpans+1)}, "33 given, at most 32 are allowed"},
		{RollupConfig{Ahead: -1}, "ahead -1ns"},
	} {
		if r, err := NewRollup(c.config); err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewRollup(%+v): error %v, want %q in it", c.config, err, c.want)
		}
	}
	r := mustRollup(t, RollupConfig{})
	for _, span := range []time.Duration{0, -1, 24*time.Hour + 1} {
		if _, err := r.Count(span); err == nil || !strings.Contains(err.Error(), "must be positive and at most 24h0m0s, the longest span here") {
			t.Errorf("Count(%v): error %v", span, err)
		}
	}
}

// The eight spans of the zero config, live, at one event a second for two days.
func TestRollupLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRollup(t, RollupConfig{})
		if got := r.Spans(); !slices.Equal(got, defaultRollupSpans()) {
			t.Errorf("spans %v", got)
		}
		for range 2 * 24 * 3600 {
			r.Add(1)
			time.Sleep(time.Second)
		}
		counts := r.AppendCounts(nil)
		if len(counts) != 8 {
			t.Fatalf("%d counts, want 8", len(counts))
		}
		for i, c := range counts {
			span := r.Spans()[i]
			n, slot := uint64(span/time.Second), uint64(span/time.Second/60)
			if c.Lo > n || c.Hi < n || c.Lo < n-slot || c.Hi > n+slot || c.Estimate < n-1 || c.Estimate > n+1 {
				t.Errorf("%v: %+v, want %d between, at most %d off", span, c, n, slot)
			}
			if got, err := r.Count(span); got != c || err != nil {
				t.Errorf("%v: %+v, %v; want %+v", span, got, err, c)
			}
		}
		// A span that it does not have, in the slots of the next larger window: 12 min of 12 h.
		if c, err := r.Count(7 * time.Hour); c.Lo > 25200 || c.Hi < 25200 || c.Hi-c.Lo != 720 || err != nil {
			t.Errorf("7 h: %+v, %v", c, err)
		}
		time.Sleep(3 * time.Hour)
		for i, c := range r.AppendCounts(counts[:0]) {
			if span := r.Spans()[i]; span <= 3*time.Hour && c.Hi != 0 || span > 3*time.Hour && c.Lo == 0 {
				t.Errorf("3 h later, %v: %d to %d", span, c.Lo, c.Hi)
			}
		}
	})
}

func TestRollupSaturate(t *testing.T) {
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{time.Minute, time.Hour}})
	at := time.Unix(1_000_000, 0)
	want := func(after time.Duration, minute, hour, saturated uint64) {
		t.Helper()
		m, _ := r.CountAt(at.Add(after), time.Minute)
		h, _ := r.CountAt(at.Add(after), time.Hour)
		if m.Lo != minute || h.Lo != hour || r.Stats().Saturated != saturated {
			t.Errorf("after %v: %d in a minute, %d in an hour, saturated %d; want %d, %d, %d", after, m.Lo, h.Lo, r.Stats().Saturated, minute, hour, saturated)
		}
	}
	r.AddAt(at, math.MaxUint64)
	want(0, maxSlotSum, maxSlotSum, 1)
	r.addLive(at.UnixNano(), 1)
	want(0, maxSlotSum, maxSlotSum, 2)
	// The slot of the hour is the same; the slot of the minute differs.
	r.AddAt(at.Add(-30*time.Second), 1)
	want(0, maxSlotSum+1, maxSlotSum, 3)
	r.AddAt(at.Add(2*time.Minute), 5)
	r.addLive(at.Add(2*time.Minute).UnixNano(), 5)
	want(2*time.Minute, 10, maxSlotSum+10, 3)
	r.AddAt(at.Add(2*time.Hour), 7)
	r.AddAt(at.Add(90*time.Minute), 8)
	want(2*time.Hour, 7, 15, 3)
	// Two slots that are full are more than a count can be.
	r.AddAt(at.Add(2*time.Hour), math.MaxUint64)
	r.AddAt(at.Add(119*time.Minute), math.MaxUint64)
	r.AddAt(at.Add(118*time.Minute), math.MaxUint64)
	want(2*time.Hour, maxSlotSum, math.MaxInt64, 6)
}

func TestRollupTimesAtTheEnds(t *testing.T) {
	for _, spans := range [][]time.Duration{nil, {time.Millisecond}, {MaxSpan}, {time.Millisecond, 7 * time.Millisecond, MaxSpan}} {
		for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64), time.Unix(0, 0), time.Unix(0, -1)} {
			r := mustRollup(t, RollupConfig{Spans: spans, Ahead: time.Hour})
			if !r.AddAt(at, 3) {
				t.Errorf("%v at %v: refused", spans, at)
			}
			for _, c := range r.AppendCountsAt(at, nil) {
				if c.Lo != 3 || c.Hi != 3 {
					t.Errorf("%v at %v: %+v, want 3", spans, at, c)
				}
			}
			r.Add(1)
			r.AddAt(time.Unix(1<<40, 0), 1)
			r.AddAt(time.Unix(1<<40, 0), 1)
			if got, _ := r.CountAt(time.Unix(1<<40, 0), r.Spans()[0]); got.Lo == 0 {
				t.Errorf("%v at %v: the end of time counts 0", spans, at)
			}
		}
	}
}

func TestRollupNoAllocations(t *testing.T) {
	r := mustRollup(t, RollupConfig{})
	at := time.Now()
	step := func() time.Time { at = at.Add(2 * time.Second); return at }
	counts := make([]Count, 0, 8)
	for name, do := range map[string]func(){
		"Add":          func() { r.Add(1) },
		"Add large":    func() { r.Add(1 << 33) },
		"AddAt":        func() { r.AddAt(step(), 1) },
		"AddAt before": func() { r.AddAt(at.Add(-time.Hour), 1) },
		"AddAt late":   func() { r.AddAt(time.Unix(0, 0), 1) },
		"AddAt idle":   func() { at = at.Add(30 * time.Hour); r.AddAt(at, 1) },
		"Count":        func() { _, _ = r.Count(time.Hour); _, _ = r.CountAt(at, time.Minute) },
		"all":          func() { r.AppendCounts(counts); r.AppendCountsAt(at, counts) },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// The documented sizes.
func TestRollupSize(t *testing.T) {
	r := mustRollup(t, RollupConfig{})
	bytes := int(unsafe.Sizeof(*r)) + len(r.windows)*int(unsafe.Sizeof(amounts{})+unsafe.Sizeof([]int64{}))
	for i := range r.windows {
		bytes += 8 * len(r.windows[i].sums[0])
	}
	t.Logf("%d bytes for %d spans", bytes, len(r.spans))
	if bytes > 5120 {
		t.Errorf("the zero config takes %d bytes, documented are 5 KiB", bytes)
	}
}
