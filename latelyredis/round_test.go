package latelyredis

import (
	"testing"
	"time"
)

// TestRoundJoin has calls join a round only if they may end at its deadline.
func TestRoundJoin(t *testing.T) {
	var o rounds
	some := func(n int) []*call { return make([]*call, n) }
	at := time.Now()
	first, leads := o.join(some(2), at)
	if !leads {
		t.Fatal("the first calls have joined a round")
	}
	for _, c := range []struct {
		what  string
		later time.Duration
		want  bool
	}{
		{"the same deadline", 0, true},
		{"a deadline little later", roundSpread, true},
		{"an earlier deadline", -1, false},
		{"a later deadline", 2 * roundSpread, false},
	} {
		o.open = first
		if r, leads := o.join(some(1), at.Add(c.later)); leads == c.want || c.want != (r == first) {
			t.Errorf("%s: joined %v, want %v", c.what, !leads, c.want)
		}
	}
	if n := len(first.calls); n != 4 {
		t.Errorf("%d calls in the round, want 4", n)
	}
	o.open = first
	o.join(some(roundCalls), at)
	next, leads := o.join(some(1), at)
	if !leads {
		t.Error("joined a round that is full")
	}
	if o.close(first); o.open != next {
		t.Error("the end of a round has ended the next")
	}
	o.close(next)
	if _, leads := o.join(some(1), at); !leads {
		t.Error("joined a round that was sent")
	}
}
