package throttle

import (
	"fmt"
	"log"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

func (t *Limiter) TakeAt(at time.Time, key string, burst, count uint64, period time.Duration, quantity uint64) (ratelimit.Decision, error) {
	return t.take(at.UnixNano(), key, burst, count, period, quantity)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func at(ms int64) time.Time { return time.UnixMilli(ms) }

func second(s int64) time.Time { return time.Unix(s, 0) }

func mustThrottle(t testing.TB, budget int64) *Limiter {
	t.Helper()
	th := must.Get(New(budget))(t)
	return th
}

// TestAnswersAsRedisCell has the answers of CL.THROTTLE in the documentation and the tests of redis-cell.
func TestAnswersAsRedisCell(t *testing.T) {
	const none = 0
	th := mustThrottle(t, 0)
	d, err := th.TakeAt(at(0), "user123", 15, 30, time.Minute, 1)
	if want := (ratelimit.Decision{Allowed: true, Limit: 16, Remaining: 15, ResetAfter: 2 * time.Second}); d != want || err != nil {
		t.Errorf("CL.THROTTLE user123 15 30 60 1: %+v, %v; want %+v", d, err, want)
	}
	for i, c := range []struct {
		at                  int64 // ms
		quantity, remaining uint64
		reset, retry        time.Duration
		limited             bool
	}{
		{0, 6, 5, 0, ratelimit.Never, true}, // never more than the limit
		{0, 1, 4, ms(1000), none, false},
		{0, 1, 3, ms(2000), none, false},
		{0, 1, 2, ms(3000), none, false},
		{0, 1, 1, ms(4000), none, false},
		{0, 1, 0, ms(5000), none, false},
		{0, 1, 0, ms(5000), ms(1000), true},
		{0, 0, 0, ms(5000), none, false},
		{3000, 1, 2, ms(3000), none, false},
		{3100, 1, 1, ms(3900), none, false},
		{4000, 1, 1, ms(4000), none, false},
		{8000, 1, 4, ms(1000), none, false},
		{9500, 1, 4, ms(1000), none, false},
		{9500, 0, 4, ms(1000), none, false}, // a quantity of 0 only reads
		{9500, 2, 2, ms(3000), none, false},
		{9500, 5, 2, ms(3000), ms(3000), true},
		{9500, 9, 2, ms(3000), ratelimit.Never, true},
	} {
		d, err := th.TakeAt(at(c.at), "foo", 4, 1, time.Second, c.quantity)
		want := ratelimit.Decision{Allowed: !c.limited, Limit: 5, Remaining: c.remaining, RetryAfter: c.retry, ResetAfter: c.reset}
		if d != want || err != nil {
			t.Errorf("case %d: %+v, %v; want %+v", i, d, err, want)
		}
	}
}

// A ratBucket is GCRA in rational numbers: when the bucket will be empty.
type ratBucket struct{ empty *big.Rat }

// take judges by the definition: the times of redis-cell without its rounding.
func (b *ratBucket) take(now int64, burst, count uint64, period time.Duration, quantity uint64) (d ratelimit.Decision) {
	one := new(big.Rat).SetFrac(big.NewInt(int64(period)), new(big.Int).SetUint64(count))
	times := func(n uint64) *big.Rat { return new(big.Rat).Mul(one, new(big.Rat).SetInt(new(big.Int).SetUint64(n))) }
	t := new(big.Rat).SetInt64(now)
	from := t
	if b.empty != nil && b.empty.Cmp(t) > 0 {
		from = b.empty
	}
	d.Limit = burst + 1
	next := new(big.Rat).Add(from, times(quantity))
	// Later units, after the tolerance, have to wait.
	late := new(big.Rat).Sub(new(big.Rat).Sub(next, times(d.Limit)), t)
	if d.Allowed = late.Sign() <= 0; !d.Allowed {
		next, d.RetryAfter = from, ratelimit.Never
		if quantity <= d.Limit {
			d.RetryAfter = ceilRat(late)
		}
	} else if quantity > 0 {
		b.empty = next
	}
	rest := new(big.Rat).Sub(next, t)
	d.ResetAfter = ceilRat(rest)
	left := new(big.Rat).Sub(times(d.Limit), rest)
	if left.Sign() > 0 {
		left.Quo(left, one)
		d.Remaining = new(big.Int).Quo(left.Num(), left.Denom()).Uint64()
	}
	return d
}

func ceilRat(r *big.Rat) time.Duration {
	n := new(big.Int).Add(r.Num(), r.Denom())
	n.Sub(n, big.NewInt(1))
	return time.Duration(n.Div(n, r.Denom()).Int64())
}

// TestIsExact takes at the edges of buckets, with limits of every size that do not divide their periods, and compares each
// answer with rational numbers.
func TestIsExact(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 200
	if os.Getenv("LATELY_LONG") != "" {
		rounds = 20_000
	}
	limited := 0
	for range rounds {
		th, b := mustThrottle(t, 4<<20), &ratBucket{}
		burst, count := rnd.Uint64N(1+rnd.Uint64N(100)), 1+rnd.Uint64N(1+rnd.Uint64N(5000))
		if rnd.IntN(10) == 0 {
			burst, count = rnd.Uint64N((limit.MaxN - 1)), 1+rnd.Uint64N((limit.MaxN-1))
		}
		period := time.Duration(1+rnd.Int64N(1+rnd.Int64N(100_000))) * time.Millisecond
		now, wait := rnd.Int64N(4e18)-2e18, int64(0)
		for range 200 {
			one := int64(period) / int64(count)
			switch rnd.IntN(6) {
			case 0:
				now += rnd.Int64N(2*one + 1)
			case 1:
				now += wait
			case 2:
				now += max(wait-1, 0)
			case 3:
				now += rnd.Int64N(2 * int64(period))
			}
			quantity := min(rnd.Uint64N(4), burst+2)
			if rnd.IntN(4) == 0 {
				quantity = rnd.Uint64N(burst + 3)
			}
			d, err := th.TakeAt(time.Unix(0, now), "k", burst, count, period, quantity)
			if want := b.take(now, burst, count, period, quantity); d != want || err != nil {
				t.Fatalf("burst %d, %d in %v, quantity %d:\n got %+v, %v\nwant %+v", burst, count, period, quantity, d, err, want)
			}
			if wait = 0; !d.Allowed {
				limited++
			}
			if d.RetryAfter != ratelimit.Never {
				wait = int64(d.RetryAfter)
			}
		}
	}
	if limited < 10*rounds {
		t.Errorf("%d limited: the test has no teeth", limited)
	}
}

// TestDoesNotDrift takes sevenths of a second for 100,000 seconds.
func TestDoesNotDrift(t *testing.T) {
	th := mustThrottle(t, 0)
	for i := range int64(100_000) {
		for range 7 {
			if d, err := th.TakeAt(time.Unix(i, 0), "k", 6, 7, time.Second, 1); !d.Allowed || err != nil {
				t.Fatalf("second %d: %+v, %v", i, d, err)
			}
		}
		if d, _ := th.TakeAt(time.Unix(i+1, -1), "k", 6, 7, time.Second, 7); d.Allowed || d.RetryAfter != 1 {
			t.Fatalf("a nanosecond before second %d: %+v", i+1, d)
		}
	}
}

// TestChangesLimits takes from one key with other limits: the bucket is empty at the same time, but for the part of a
// nanosecond.
func TestChangesLimits(t *testing.T) {
	rnd := randtest.New(t)
	for range 100 {
		th, b := mustThrottle(t, 4<<20), &ratBucket{}
		now, changes := int64(0), int64(0)
		for range 100 {
			burst, count, period := rnd.Uint64N(20), 1+rnd.Uint64N(20), time.Duration(1+rnd.Int64N(5000))*time.Millisecond
			now += rnd.Int64N(int64(period))
			changes++
			d := must.Get(th.TakeAt(time.Unix(0, now), "k", burst, count, period, 1))(t)
			before := *b
			want := b.take(now, burst, count, period, 1)
			if diff := int64(d.ResetAfter - want.ResetAfter); d.Allowed == want.Allowed && (diff < 0 || diff > changes) || d.Allowed && !want.Allowed {
				t.Fatalf("%+v, want %+v", d, want)
			}
			if !d.Allowed {
				*b = before
			}
		}
	}
	th := mustThrottle(t, 0)
	th.TakeAt(at(0), "k", 99, 1, time.Second, 100)
	d, _ := th.TakeAt(at(0), "k", 4, 1, time.Second, 0)
	if want := (ratelimit.Decision{Limit: 5, RetryAfter: 95 * time.Second, ResetAfter: 100 * time.Second}); d != want {
		t.Errorf("to look at a bucket that is fuller than the limit: %+v, want %+v", d, want)
	}
}

func TestErrors(t *testing.T) {
	th := mustThrottle(t, 0)
	for _, c := range []struct {
		burst, count uint64
		period       time.Duration
		want         string
	}{
		{1, 0, time.Second, "count: 0: must be 1 to 4294967294"},
		{1, math.MaxUint64, time.Second, "count: 18446744073709551615: must be 1 to"},
		{math.MaxUint64, 1, time.Second, "burst: 18446744073709551615: must be 0 to 4294967294"},
		{1, 1, 0, "period: 0s: must be whole milliseconds from 1ms"},
		{1, 1, -time.Second, "period: -1s: must be"},
		{1, 1, limit.MaxSpan + time.Millisecond, "period: 87600h0m0.001s: must be"},
		{(limit.MaxN - 1), 1, time.Second, "burst: 4294967294: at 1 in 1s, one more than that takes longer than 87600h0m0s to drain"},
	} {
		if _, err := th.TakeAt(at(0), "k", c.burst, c.count, c.period, 1); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("burst %d, %d in %v: %v, want %q", c.burst, c.count, c.period, err, c.want)
		}
	}
	if _, err := th.Take(strings.Repeat("k", 1025), 1, 1, time.Second, 1); err == nil || err.Error() != "key: 1025 bytes: must be at most 1024" {
		t.Errorf("a key of 1,025 bytes: %v", err)
	}
	if d, err := th.Take(strings.Repeat("k", 1024), 1, 1, time.Second, math.MaxUint64); err != nil || d.Allowed || d.RetryAfter != ratelimit.Never {
		t.Errorf("a key of 1,024 bytes, the largest quantity: %+v, %v", d, err)
	}
	for budget, want := range map[int64]string{-1: "budget -1: an empty table takes", 1000: "budget 1000: an empty table takes"} {
		if _, err := New(budget); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("budget %d: %v", budget, err)
		}
	}
	if n := th.Stats().Rules[0].Keys; n != 0 {
		t.Errorf("%d keys are kept of calls that have counted nothing", n)
	}
}

// TestLive lets time pass, and looks at keys that are not there.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := mustThrottle(t, 0)
		for i := range 3 {
			d, err := th.Take("k", 1, 1, time.Second, 1)
			if err != nil || d.Allowed != (i != 2) {
				t.Errorf("take %d: %+v, %v", i, d, err)
			}
		}
		time.Sleep(time.Second)
		if d, _ := th.Take("k", 1, 1, time.Second, 1); !d.Allowed {
			t.Errorf("a second later: %+v", d)
		}
		if !th.Remove("k") || th.Remove("k") {
			t.Error("a key is not evicted once")
		}
		if d, _ := th.Take("k", 1, 1, time.Second, 0); d.Remaining != 2 || th.Stats().Rules[0].Keys != 0 {
			t.Errorf("a key that was evicted: %+v, %+v", d, th.Stats())
		}
	})
}

// TestConcurrent takes from many goroutines: exactly the limit is allowed.
func TestConcurrent(t *testing.T) {
	th := mustThrottle(t, 0)
	var allowed [50]atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			for range 5000 {
				k := rnd.IntN(len(allowed))
				if d, err := th.TakeAt(at(0), fmt.Sprint("k", k), 20, 100, time.Minute, 1); err != nil {
					t.Error(err)
				} else if d.Allowed {
					allowed[k].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for k := range allowed {
		if n := allowed[k].Load(); n != 21 {
			t.Errorf("%d of key %d allowed, want 21", n, k)
		}
	}
}

func TestDoesNotAllocate(t *testing.T) {
	th := mustThrottle(t, 0)
	n := testing.AllocsPerRun(1000, func() {
		th.Take("k", 15, 30, time.Minute, 1)
		th.Take("a key that is longer than fifteen bytes", 15, 7, time.Minute, 0)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkTake has a few limits in turn, and keys in the cache or not.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			th, drawn := mustThrottle(b, 0), make([]string, 1<<16)
			for i := range drawn {
				drawn[i] = fmt.Sprint(rand.IntN(keys))
			}
			for i := 0; b.Loop(); i++ {
				th.Take(drawn[i&(len(drawn)-1)], 59, 60, time.Minute, 1)
			}
		})
	}
}

// The limit comes with the call.
func ExampleLimiter() {
	throttle, err := New(0)
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		d, err := throttle.Take("user123", 2, 30, time.Minute, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Limit, d.Remaining, d.RetryAfter > 0, d.ResetAfter.Round(time.Second))
	}
	// Output:
	// true 3 2 false 2s
	// true 3 1 false 4s
	// true 3 0 false 6s
	// false 3 0 true 6s
}
