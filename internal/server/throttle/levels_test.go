package throttle

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// TestBudget floods a small throttle: limited keys stay limited, and the budget holds.
func TestBudget(t *testing.T) {
	const budget = 256 << 10
	th := mustThrottle(t, budget)
	for i := range 500 {
		key := fmt.Sprint("limited ", i)
		for range 3 {
			th.TakeAt(at(0), key, 1, 1, time.Hour, 1)
		}
	}
	for i := range 100_000 {
		th.TakeAt(at(int64(i)), fmt.Sprint("flood ", i), 10, 1, time.Second, 1)
	}
	s := th.Stats()
	if keys := s.Rules[0]; s.Bytes > budget || s.Budget != budget || keys.Keys < 1000 || keys.Expired+keys.Evicted < 50_000 {
		t.Errorf("%+v", s)
	}
	for i := range 500 {
		if d, _ := th.TakeAt(at(100_000), fmt.Sprint("limited ", i), 1, 1, time.Hour, 1); d.Allowed {
			t.Fatalf("key %d, which was limited, has got in: %+v", i, d)
		}
	}
	// Keys that fill the budget and may not be evicted.
	for i := range 20_000 {
		th.TakeAt(at(100_000), fmt.Sprint("full ", i), 0, 1, time.Hour, 1)
	}
	if s = th.Stats(); s.Rules[0].Full < 1000 || s.Bytes > budget {
		t.Errorf("%+v", s)
	}
	d, err := th.TakeAt(at(100_000), "full 19999 and one more", 3, 1, time.Hour, 2)
	if want := (ratelimit.Decision{Limit: 4, RetryAfter: 2 * time.Hour, ResetAfter: 2 * time.Hour}); d != want || err != nil {
		t.Errorf("without memory: %+v, %v", d, err)
	}
	// A page that was found full is searched again after an eighth as many keys.
	limited := 0
	for i := range 2000 {
		if d, _ = th.TakeAt(at(200_000+3_600_000), fmt.Sprint("when those have drained ", i), 3, 1, time.Hour, 1); !d.Allowed {
			limited++
		}
	}
	if !d.Allowed || limited > 1000 {
		t.Errorf("an hour later, %d of 2000 are limited: %+v, %+v", limited, d, th.Stats())
	}
}

// TestNoEarlyEviction has keys evicted when their buckets are empty, and return with a clock set back: they find no more
// left than there is at the newest time of all.
func TestNoEarlyEviction(t *testing.T) {
	rnd := randtest.New(t)
	th := mustThrottle(t, 128<<10)
	newest, spent := int64(1e12), map[string]*ratBucket{}
	limited := 0
	for i := range 40_000 {
		newest += rnd.Int64N(2e6)
		now := newest - rnd.Int64N(2)*rnd.Int64N(1e9)
		key := strconv.Itoa(i - rnd.IntN(min(i+1, 500)))
		b := spent[key]
		if b == nil {
			b = &ratBucket{}
			spent[key] = b
		}
		d := must.Get(th.TakeAt(time.Unix(0, now), key, 2, 5, time.Second, 1))(t)
		if !d.Allowed {
			limited++
			continue
		}
		if want := (&ratBucket{b.empty}).take(newest, 2, 5, time.Second, 1); !want.Allowed {
			t.Fatalf("event %d of %s is allowed: %+v, want %+v", i, key, d, want)
		}
		b.take(now, 2, 5, time.Second, 1) // as early as it may have been judged
	}
	if th.Stats().Rules[0].Expired == 0 || limited < 1000 {
		t.Errorf("%+v, %d limited: the test has no teeth", th.Stats(), limited)
	}
}

// TestKeyComesBack evicts a key whose bucket is empty, and sets the clock back: the key is judged at the time at which it
// was evicted, not before.
func TestKeyComesBack(t *testing.T) {
	th := mustThrottle(t, 128<<10)
	take := func(ms int64, limited bool) {
		t.Helper()
		if d, err := th.TakeAt(at(ms), "k", 2, 1, time.Second, 3); err != nil || d.Allowed == limited {
			t.Errorf("at %d ms: %+v, %v", ms, d, err)
		}
	}
	take(10_000, false)
	for i := range 30_000 {
		th.TakeAt(at(20_000), fmt.Sprint("flood ", i), 10, 1, time.Second, 1)
	}
	if th.Remove("k") {
		t.Fatal("the key was not evicted: the test has no teeth")
	}
	take(10_500, false)
	take(20_000, true) // the last three were judged now
	take(23_000, false)
}
