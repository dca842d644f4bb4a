package limit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// extremes are the numbers at which arithmetic goes wrong.
var extremes = []uint64{
	0, 1, 2, 1<<8 - 2, 1<<8 - 1, 1 << 8, 1<<16 - 2, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 2, 1<<32 - 1, 1 << 32,
	1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64,
}

// TestOverflow charges and takes extreme costs under extreme limits and spans, near both ends of time: nothing panics or
// wraps, and a charge never lowers the used amount.
func TestOverflow(t *testing.T) {
	const end = math.MaxInt64 - 4*int64(limit.MaxSpan) // the latest time of keytable.Nanos
	counters := 0
	for _, n := range extremes {
		for _, span := range []time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, 24 * time.Hour, limit.MaxSpan} {
			for _, burst := range []uint64{0, 1, n / 2, 2 * n, math.MaxInt64} {
				for _, c := range allKinds(n, span) {
					if n > 1<<15 && (c.Algorithm == limit.Exact || c.Algorithm == limit.InFlight) && span != time.Second {
						continue // thousands of times for each cost
					}
					if c.Burst = burst; burst != 0 && c.Algorithm != limit.GCRA && c.Algorithm != limit.LeakyBucket {
						continue
					}
					m, err := limit.New(c)
					if err != nil {
						if !strings.HasPrefix(err.Error(), "limit: ") && !strings.HasPrefix(err.Error(), "burst: ") {
							t.Errorf("%+v: %v", c, err)
						}
						continue
					}
					counters++
					for _, now := range []int64{-end, 0, 1 << 53, 2_147_483_648e9, end} {
						checkExtremes(t, c, m, now)
					}
				}
			}
		}
	}
	if counters < 500 {
		t.Errorf("only %d counters", counters)
	}
}

func checkExtremes(t *testing.T, c limit.Config, m limit.Counter, now int64) {
	t.Helper()
	most := m.Most()
	costs := extremes
	if (c.Algorithm == limit.Exact || c.Algorithm == limit.InFlight) && most > 1<<15 {
		if now != 0 {
			return
		}
		costs = []uint64{1, most, math.MaxUint64}
	}
	for _, cost := range costs {
		s := newSubject(t, c)
		before := s.advance(now)
		if wait := s.wait(now, cost); before != 0 || (wait == 0) != (cost <= most) || wait < -1 {
			t.Fatalf("%+v at %d: %d used of nothing, the wait for %d is %d", c, now, before, cost, wait)
		}
		for range 3 {
			s.charge(now, cost)
			used := s.used(now)
			if used < before || used < min(cost, most) {
				t.Fatalf("%+v at %d: %d used after %d more, before %d", c, now, used, cost, before)
			}
			before = used
			wait := s.wait(now, max(most, 1))
			if (wait == 0) != (used == 0 && most > 0) || wait < 0 || s.reset(now) < 0 || s.Delay(s.w, s.b, now) < 0 {
				t.Fatalf("%+v at %d: %d used, the wait for all is %d, the reset %d", c, now, used, wait, s.reset(now))
			}
			if time.Duration(wait) == limit.Never {
				if most > 0 {
					t.Fatalf("%+v at %d: the wait for all is Never", c, now)
				}
				continue
			}
			if wait > 0 && s.copy().take(now+wait, most) != true {
				t.Fatalf("%+v at %d: %d used, refused after the wait of %d", c, now, used, wait)
			}
			if wait > 4*int64(limit.MaxSpan) {
				t.Fatalf("%+v at %d: %d used, the wait for all is %v", c, now, used, time.Duration(wait))
			}
		}
		if taken := s.refund(now, now, cost); taken > cost || s.used(now) > before {
			t.Fatalf("%+v at %d: a refund of %d takes back %d", c, now, cost, taken)
		}
	}
}
