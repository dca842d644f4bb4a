package sketch_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
)

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
		{N: 1, Span: time.Second, Counters: 1 << 16},
		{N: 254, Span: time.Second, Counters: 1 << 20},
		{N: 255, Span: time.Second, Counters: 12_345},
		{N: 1 << 40, Span: time.Second, Counters: 100_000},
		{N: 60, Span: time.Second, Counters: 1},
	} {
		before := heapNow()
		w := sketch.New(c)
		for i := range uint64(10_000) {
			w.Take(i, int64(i), 1)
		}
		got, want := heapNow()-before, sketch.Bytes(c)
		const others = 16 << 10 // what the runtime may do meanwhile
		if got > want+others || got < want*8/9-others {
			t.Errorf("%+v: the heap holds %d, Bytes: %d", c, got, want)
		}
		runtime.KeepAlive(w)
	}
}

// Fit finds the largest window, or nearly so.
func TestFit(t *testing.T) {
	rnd := newRand(t)
	for range 10_000 {
		n, bytes := rnd.Uint64()>>rnd.UintN(64), rnd.Int64()>>(22+rnd.UintN(41))
		got, ok := sketch.Fit(n, time.Minute, bytes)
		if !ok {
			if least := (sketch.Config{N: n, Span: time.Minute, Counters: 1}); bytes > sketch.Bytes(least) {
				t.Fatalf("N %d does not fit into %d, but %+v takes %d", n, bytes, least, sketch.Bytes(least))
			}
			continue
		}
		if took := sketch.Bytes(got); took > bytes {
			t.Fatalf("N %d in %d bytes: %+v takes %d", n, bytes, got, took)
		}
		more := got
		more.Counters += got.Counters/16 + 1
		if took := sketch.Bytes(more); took <= bytes {
			t.Fatalf("N %d in %d bytes: %+v, but %+v takes %d", n, bytes, got, more, took)
		}
		if got.N != n || got.Span != time.Minute {
			t.Fatalf("N %d in %d bytes: %+v", n, bytes, got)
		}
	}
	if c, ok := sketch.Fit(1, time.Minute, -5); ok {
		t.Errorf("fits into less than nothing: %+v", c)
	}
}
