package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// adaptive returns a limiter whose rule is the table of origin O3.5: below 1000
// a second 2000, below 5000 1000, else 500.
func adaptive(t *testing.T, a ratelimit.Adapt) *ratelimit.Limiter {
	r := limitRule(t, "r", per(2000, time.Second))
	a.Steps = []ratelimit.AdaptStep{{Below: 1000, Limit: 2000}, {Below: 5000, Limit: 1000}}
	a.Above = 500
	r.Adapt = &a
	return mustLimiter(t, mustSet(t, r), ratelimit.Config{})
}

// drive sends rate events a second for that long, from t on, of many keys, and
// returns the time after them and the N that then holds.
func drive(l *ratelimit.Limiter, t time.Time, rate int, d time.Duration) (time.Time, uint64) {
	step := time.Second / time.Duration(rate)
	var n uint64
	for end := t.Add(d); t.Before(end); t = t.Add(step) {
		n = takeKeyN(l, t, fmt.Sprint("k", t.UnixNano()/int64(step)%50), 1).Limit
	}
	return t, n
}

func TestAdaptFollowsTheTraffic(t *testing.T) {
	l := adaptive(t, ratelimit.Adapt{Span: 10 * time.Second})
	now := at(0)
	for _, c := range []struct {
		rate int
		want uint64
	}{{500, 2000}, {2000, 1000}, {8000, 500}, {2000, 1000}, {500, 2000}} {
		var n uint64
		if now, n = drive(l, now, c.rate, 12*time.Second); n != c.want {
			t.Errorf("at %d a second N is %d, want %d", c.rate, n, c.want)
		}
	}
}

// TestAdaptDoesNotFlap goes to and fro around a threshold by less than the
// hysteresis. Without it, N changes with each swing.
func TestAdaptDoesNotFlap(t *testing.T) {
	changes := func(hysteresis float64) int {
		l := adaptive(t, ratelimit.Adapt{Span: 2 * time.Second, Hysteresis: hysteresis})
		now, last := drive(l, at(0), 900, 4*time.Second)
		n := 0
		for i := range 12 {
			var is uint64
			if now, is = drive(l, now, 980+40*(i%2), 3*time.Second); is != last {
				n, last = n+1, is
			}
		}
		return n
	}
	if n := changes(0.1); n != 1 {
		t.Errorf("N changed %d times, want once", n)
	}
	if n := changes(-1); n < 5 {
		t.Errorf("the control without hysteresis changed %d times only: the test proves nothing", n)
	}
}

// TestAdaptSmooth comes most of the way in the time constant, without a jump.
func TestAdaptSmooth(t *testing.T) {
	l := adaptive(t, ratelimit.Adapt{Span: time.Second, Smooth: 10 * time.Second})
	now, n := drive(l, at(0), 200, 5*time.Second)
	if n < 1800 || n > 2000 { // at 200 on the line from (0, 2000) to (1000, 1000)
		t.Errorf("at the start N is %d, want 1800 to 2000", n)
	}
	last := n
	for range 10 {
		if now, n = drive(l, now, 3000, time.Second); n > last || last-n > 300 {
			t.Errorf("N went from %d to %d in a second", last, n)
		}
		last = n
	}
	// The average is 200 + 63 % of 2800; N lies on the line from (1000, 1000)
	// to (5000, 500).
	if n > 1000 || n < 850 {
		t.Errorf("after the time constant N is %d, want 850 to 1000", n)
	}
}

// TestAdaptIsTheLimit refuses by the N that holds, not by the one in the rule.
func TestAdaptIsTheLimit(t *testing.T) {
	r := limitRule(t, "r", per(5, time.Minute))
	r.Adapt = &ratelimit.Adapt{Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 1, Limit: 5}}, Above: 2}
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	now := at(0)
	for i := range 100 { // 100 a second, of other keys
		now = now.Add(10 * time.Millisecond)
		takeKeyN(l, now, fmt.Sprint("other", i), 1)
	}
	var allowed int
	for range 10 {
		if takeKeyN(l, now, "k", 1).Allowed {
			allowed++
		}
	}
	if allowed != 2 {
		t.Errorf("%d allowed, want 2", allowed)
	}
	if got := l.Stats().Rules[0].Limit; got != 2 {
		t.Errorf("limit in Stats: %d, want 2", got)
	}
	if d := peekKeyN(l, now, "new", 4); d.Allowed || d.RetryAfter == ratelimit.Never || d.RetryAfter == 0 {
		t.Errorf("a cost that the table may allow again: %+v", d)
	}
	if d := peekKeyN(l, now, "new", 6); d.RetryAfter != ratelimit.Never {
		t.Errorf("a cost above the whole table: %+v", d)
	}
}

func ExampleAdapt() {
	a := ratelimit.Adapt{
		Steps: []ratelimit.AdaptStep{{Below: 1000, Limit: 2000}, {Below: 5000, Limit: 1000}},
		Above: 500,
	}
	for _, s := range a.Steps {
		fmt.Printf("below %v a second: %d\n", s.Below, s.Limit)
	}
	fmt.Printf("else: %d\n", a.Above)
	// Output:
	// below 1000 a second: 2000
	// below 5000 a second: 1000
	// else: 500
}
