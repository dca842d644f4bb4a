package sketch_test

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/sketch"
)

func TestConfigMistakes(t *testing.T) {
	ok := sketch.Config{N: 60, Span: time.Minute}
	for want, change := range map[string]func(c *sketch.Config){
		"span 0s: must be 1ms to 87600h0m0s":    func(c *sketch.Config) { c.Span = 0 },
		"span 999.999µs: must be":               func(c *sketch.Config) { c.Span = sketch.MinSpan - 1 },
		"span 87600h0m0.000000001s: must be":    func(c *sketch.Config) { c.Span = sketch.MaxSpan + 1 },
		"counters -1: must be 0 (the default, ": func(c *sketch.Config) { c.Counters = -1 },
		"counters 268435457: must be":           func(c *sketch.Config) { c.Counters = sketch.MaxCounters + 1 },
		"rows 9: must be 0 (the default, 3":     func(c *sketch.Config) { c.Rows = 9 },
		"rows -1: must be":                      func(c *sketch.Config) { c.Rows = -1 },
		"parts -1: must be":                     func(c *sketch.Config) { c.Parts = -1 },
		"parts 4097: must be":                   func(c *sketch.Config) { c.Parts = 4097 },
	} {
		c := ok
		change(&c)
		if _, err := sketch.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", c, err, want)
		}
	}
	if _, err := sketch.New(ok); err != nil {
		t.Error(err)
	}
}

func heapNow() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bytes is what the heap holds, or an eighth more.
func TestBytesAsMeasured(t *testing.T) {
	for _, c := range []sketch.Config{
		{N: 1, Span: time.Second},
		{N: 254, Span: time.Second, Counters: 1 << 20},
		{N: 255, Span: time.Second, Counters: 12_345},
		{N: 1 << 40, Span: time.Second, Counters: 100_000, Rows: 4, Parts: 4096},
		{N: 60, Span: time.Second, Counters: 3000, Rows: 1, Parts: 1},
	} {
		before := heapNow()
		w := newWindow(t, c)
		for i := range uint64(10_000) {
			w.Take(i, int64(i), 1)
		}
		got, want := heapNow()-before, sketch.Bytes(c)
		const others = 16 << 10 // what the runtime may do meanwhile
		if got > want+others || got < want*8/9-others {
			t.Errorf("%+v: the heap holds %d, Bytes says %d", c, got, want)
		}
		runtime.KeepAlive(w)
	}
}

// Fit finds the largest window, or nearly so.
func TestFit(t *testing.T) {
	rnd := newRand(t)
	for range 10_000 {
		c := sketch.Config{N: rnd.Uint64() >> rnd.UintN(64), Span: time.Minute, Rows: rnd.IntN(9), Parts: rnd.IntN(3) * rnd.IntN(100)}
		bytes := rnd.Int64() >> (22 + rnd.UintN(41))
		got, ok := sketch.Fit(c, bytes)
		if !ok {
			least := c
			least.Counters = max(c.Parts, 1)
			if bytes > sketch.Bytes(least)*9/8+64 {
				t.Fatalf("%+v does not fit into %d, but %+v takes %d", c, bytes, least, sketch.Bytes(least))
			}
			continue
		}
		if took := sketch.Bytes(got); took > bytes {
			t.Fatalf("%+v in %d bytes: %+v takes %d", c, bytes, got, took)
		}
		more := got
		more.Counters += got.Counters/8 + 2*got.Parts
		if took := sketch.Bytes(more); took <= bytes && more.Counters <= sketch.MaxCounters {
			t.Fatalf("%+v in %d bytes: %+v, but %+v takes %d", c, bytes, got, more, took)
		}
		if got.N != c.N || got.Span != c.Span || got.Counters%got.Parts != 0 {
			t.Fatalf("%+v in %d bytes: %+v", c, bytes, got)
		}
	}
	if c, ok := sketch.Fit(sketch.Config{N: 1, Span: time.Minute}, -5); ok {
		t.Errorf("fits into less than nothing: %+v", c)
	}
	if c, ok := sketch.Fit(sketch.Config{N: 1, Span: time.Minute}, math.MaxInt64); !ok || c.Counters > sketch.MaxCounters {
		t.Errorf("without bound: %+v, %v", c, ok)
	}
}
