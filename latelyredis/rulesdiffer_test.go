package latelyredis_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// differing has two nodes with different limits for one rule decide about one key, and returns the most that both have admitted
// in any window.
func differing(t *testing.T, rng *rand.Rand, as [2]ratelimit.Algorithm, n [2]uint64, config latelyredis.Config) (most int) {
	var now atomic.Int64
	now.Store(time.Now().Truncate(24 * time.Hour).UnixMicro())
	var nodes [2]*ratelimit.Limiter
	for i := range nodes {
		rules := set(t, limited("limit", match.MustKey("path"), as[i], n[i]))
		store, err := latelyredis.NewAt(redis(t).client(t), rules, config, &now)
		if err != nil {
			t.Fatal(err)
		}
		if nodes[i], err = ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	span := time.Minute.Microseconds()
	if as[0] == ratelimit.Calendar {
		span = 24 * time.Hour.Microseconds()
	}
	var admitted []int64
	for step := range 3 * int(max(n[0], n[1])) {
		switch rng.IntN(10) {
		case 0:
			now.Add(rng.Int64N(span / 20))
		case 1, 2, 3:
			now.Add(rng.Int64N(2 * span / int64(max(n[0], n[1]))))
		}
		node := nodes[rng.IntN(2)]
		if step%50 < 25 { // each for a while alone, too
			node = nodes[step/50%2]
		}
		d := takePath(node, "/")
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		if d.Allowed {
			admitted = append(admitted, now.Load())
		}
		first := 0
		for first < len(admitted) && admitted[first] <= now.Load()-span {
			first++
		}
		admitted = admitted[first:]
		most = max(most, len(admitted))
	}
	return most
}

// TestRulesThatDiffer has two servers enforce the same rule with different N, as during a rollout of rules: both together
// admit what the larger one does alone.
func TestRulesThatDiffer(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	rng := randtest.New(t)
	for i := range ratelimit.Algorithms() {
		a := ratelimit.Algorithm(i)
		for _, n := range [][2]uint64{{20, 17}, {100, 30}, {150, 140}, {300, 100}, {129, 128}, {300, 1}, {300, 0}} {
			if a == ratelimit.InFlight {
				continue // which counts what is under way
			}
			limit := limited("limit", match.MustKey("path"), a, n[0]).Limits[0]
			want := int(limit.MaxAllowed(a))
			for range rounds {
				if got := differing(t, rng, [2]ratelimit.Algorithm{a, a}, n, prefixed()); got > want {
					t.Errorf("%v: %d and %d: %d admitted in a window, want at most %d", a, n[0], n[1], got, want)
				}
			}
		}
	}
}

// TestAlgorithmsThatDiffer is TestRulesThatDiffer for a sliding limit of 300 and a lower one of another algorithm. What has
// drained from a bucket is not carried back, so with one of these, its own worst case may be added.
func TestAlgorithmsThatDiffer(t *testing.T) {
	t.Parallel()
	rng := randtest.New(t)
	for i := range ratelimit.Algorithms() {
		a := ratelimit.Algorithm(i)
		if a == ratelimit.InFlight || a == ratelimit.Calendar {
			continue // which count what is under way, or in days
		}
		for _, n := range []uint64{1, 30, 100, 150} {
			want := 300
			if a == ratelimit.GCRA || a == ratelimit.LeakyBucket {
				want += int(limited("limit", match.MustKey("path"), a, n).Limits[0].MaxAllowed(a))
			}
			if got := differing(t, rng, [2]ratelimit.Algorithm{ratelimit.Sliding, a}, [2]uint64{300, n}, prefixed()); got > want {
				t.Errorf("%v of %d: %d admitted in a window, want at most %d", a, n, got, want)
			}
		}
	}
}
