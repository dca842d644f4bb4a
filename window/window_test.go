package window

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestWindowErrors(t *testing.T) {
	for _, c := range []struct {
		w    Window
		want string // what the error must name
	}{
		{Window{}, "span 0s: must be from 1ms to 87600h0m0s"},
		{Window{Span: -time.Second}, "span -1s"},
		{Window{Span: time.Millisecond - 1}, "span 999.999µs"},
		{Window{Span: MaxSpan + time.Millisecond}, "span 87600h0m0.001s"},
		{Window{Span: math.MaxInt64}, "must be from 1ms"},
		{Window{Span: math.MinInt64}, "must be from 1ms"},
		{Window{Span: 1500 * time.Microsecond}, "span 1.5ms: must be whole milliseconds, as 1ms"},
		{Window{Span: 10 * time.Second, Slot: 3 * time.Second}, "span 10s is not a multiple of slot 3s"},
		{Window{Span: 10 * time.Second, Slot: 20 * time.Second}, "span 10s is not a multiple of slot 20s"},
		{Window{Span: 10 * time.Second, Slot: -time.Second}, "slot -1s: must be positive"},
		{Window{Span: time.Second, Slot: 1}, "1000000000 slots of 1ns; at most 100000 are allowed, so the slot must be 10µs or more"},
		{Window{Span: time.Second, Ahead: -1}, "ahead -1ns"},
		{Window{Span: time.Second, Ahead: math.MaxInt64}, "ahead 2562047h47m16.854775807s"},
	} {
		ctr, err := NewCounter(c.w)
		if err == nil || ctr != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewCounter(%+v): error %v, want one with %q", c.w, err, c.want)
		}
		if c.w.Slots() != 0 {
			t.Errorf("%+v is not valid, but has %d slots", c.w, c.w.Slots())
		}
	}
}

func TestLast(t *testing.T) {
	for _, c := range []struct {
		span, slot time.Duration
		slots      int
	}{
		{time.Minute, time.Second, 60},
		{time.Hour, time.Minute, 60},
		{24 * time.Hour, 24 * time.Minute, 60},
		{time.Second, 15_625 * time.Microsecond, 64},
		{10 * time.Second, 156_250 * time.Microsecond, 64},
		{time.Millisecond, 15_625, 64},
		{3 * time.Millisecond, 50 * time.Microsecond, 60},
	} {
		w := Last(c.span)
		if w.Span != c.span || w.Slot != c.slot || w.Slots() != c.slots {
			t.Errorf("Last(%v) = %+v with %d slots, want %d of %v", c.span, w, w.Slots(), c.slots, c.slot)
		}
		ctr, err := NewCounter(Window{Span: c.span})
		if err != nil || ctr.Window() != w {
			t.Errorf("a slot of 0 must mean that of Last: %v, %v", ctr, err)
		}
	}
	for span := time.Millisecond; span < 3*time.Second; span += time.Millisecond {
		if _, err := NewCounter(Last(span)); err != nil {
			t.Fatalf("Last(%v): %v", span, err)
		}
	}
	if _, err := NewCounter(Last(0)); err == nil {
		t.Error("Last(0) is not a window, but NewCounter takes it")
	}
}

func TestWindowLimits(t *testing.T) {
	for _, w := range []Window{
		{Span: time.Millisecond, Slot: time.Millisecond},
		{Span: time.Millisecond, Slot: 10},
		{Span: MaxSpan, Slot: MaxSpan, Ahead: MaxSpan},
		{Span: MaxSlots * time.Second, Slot: time.Second},
		{Span: 24 * time.Hour, Slot: time.Second},
	} {
		if _, err := NewCounter(w); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
