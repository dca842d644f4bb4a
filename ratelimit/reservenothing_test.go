package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestReserveNothing reserves a cost of 0, since the cost is known later, and settles it: the final cost is charged, under
// every algorithm but InFlight, where an event of cost 0 is not in flight.
func TestReserveNothing(t *testing.T) {
	for _, name := range limit.Algorithms() {
		a := must.Get(limit.AlgorithmNamed(name))(t)
		for _, n := range []uint64{10, 200} {
			l := with(t, a, per(n, time.Hour))
			used := func() uint64 { return n - peekKeyN(l, at(0), "k", 0).Remaining }
			want := uint64(7)
			if a == ratelimit.InFlight {
				want = 0
			}
			r := reserveN(l, at(0), keyEvent(l, "k"), 0)
			if !r.Decision.Allowed || used() != 0 {
				t.Fatalf("%v: reserved nothing: %+v, %d used", a, r.Decision, used())
			}
			if err := r.SettleAt(at(0), 7); err != nil || used() != want {
				t.Errorf("%v: settled 0 to 7, %d used, %v", a, used(), err)
			}
			if err := reserveN(l, at(0), keyEvent(l, "k"), 0).SettleAt(at(0), 0); err != nil || used() != want {
				t.Errorf("%v: canceled 0, %d used, %v", a, used(), err)
			}
			// A full limit refuses nothing that costs nothing, and is charged all the same.
			takeKeyN(l, at(0), "k", n-want)
			if err := reserveN(l, at(0), keyEvent(l, "k"), 0).SettleAt(at(0), 3); err != nil || used() != n {
				t.Errorf("%v: settled 0 to 3 when full, %d used, %v", a, used(), err)
			}
		}
	}
}

// TestChargedMatchesSettleable checks for each event whether a settlement corrects
// it.
func TestChargedMatchesSettleable(t *testing.T) {
	r := limitRule(t, "r", per(1, time.Hour))
	r.CountRefused = true
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	for i, want := range []bool{true, false} { // the second is refused, and counts
		d, outcomes := l.Judge(at(0), keyEvent(l, "k"), 1, nil)
		if len(outcomes) != 1 || outcomes[0].Charged != want || d.Allowed != want {
			t.Errorf("event %d: %+v", i+1, outcomes)
		}
	}
	if _, outcomes := l.Judge(at(0), keyEvent(l, "other"), 0, nil); !outcomes[0].Charged {
		t.Errorf("cost 0: %+v", outcomes)
	}
}

// TestWaitUnderALimitOfZero waits where no waiting helps: the error names the
// limit and not the cost.
func TestWaitUnderALimitOfZero(t *testing.T) {
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.GCRA, ratelimit.Fixed} {
		l := with(t, a, per(0, time.Minute))
		_, err := l.Wait(context.Background(), keyEvent(l, "k"), 3)
		var above *ratelimit.CostError
		if !errors.As(err, &above) || above.Cost != 3 || above.Limit != 0 {
			t.Fatalf("%v: the error is %v", a, err)
		}
		if text := err.Error(); !strings.Contains(text, `rule "r" has a limit of 0`) || strings.Contains(text, "cost is") {
			t.Errorf("%v: the error is %q", a, text)
		}
	}
}

// TestPeekUnderCountRefused is how far Peek and Take differ: Take has counted the
// event that it refuses, and a client that only looked has not.
func TestPeekUnderCountRefused(t *testing.T) {
	r := limitRule(t, "r", per(1, time.Minute))
	r.CountRefused = true
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	takeKeyN(l, at(0), "k", 1)
	peek, take := peekKeyN(l, at(20_000), "k", 1), takeKeyN(l, at(20_000), "k", 1)
	if peek.Allowed || peek.RetryAfter != 40*time.Second || take.Allowed || take.RetryAfter != time.Minute {
		t.Errorf("peek %+v, take %+v", peek, take)
	}
}
