package latelyhttp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// r stays within q, and t within Retry-After, for every algorithm.
func TestFieldsOfEveryAlgorithm(t *testing.T) {
	rnd := randtest.New(t)
	for _, name := range limit.Algorithms() {
		a := must.Get(limit.AlgorithmNamed(name))(t)
		r := limited(t, "a", 5, time.Minute)
		r.Algorithm = a
		r.Limits = append(r.Limits, ratelimit.Limit{N: 150, Span: time.Hour})
		if a == ratelimit.GCRA {
			r.Limits[0].Burst, r.Limits[1].Burst = 9, 50
		}
		synctest.Test(t, func(t *testing.T) {
			h := mustNew(t, mustLimiter(t, r), Config{}).Wrap(new(ok))
			codes := map[int]int{}
			for range 500 {
				w := do(h, request("192.0.2.1:1"))
				checkDraft(t, w.Header(), w.Code)
				codes[w.Code]++
				time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Second))))
			}
			if t.Failed() || codes[200] == 0 || codes[429] == 0 && a != ratelimit.InFlight && a != ratelimit.LeakyBucket {
				t.Fatalf("%s: the answers are %v", name, codes)
			}
		})
	}
}

// The quota of an adaptive limit is its current limit.
func TestAdaptivePolicy(t *testing.T) {
	r := limited(t, "a", 1000, time.Minute)
	r.Adapt = &ratelimit.Adapt{Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 50, Limit: 1000}}, Above: 20}
	synctest.Test(t, func(t *testing.T) {
		h := mustNew(t, mustLimiter(t, r), Config{}).Wrap(new(ok))
		seen := map[string]bool{}
		for range 300 {
			w := do(h, request("192.0.2.1:1"))
			checkDraft(t, w.Header(), w.Code)
			seen[header(t, w, "RateLimit-Policy")] = true
			time.Sleep(10 * time.Millisecond)
		}
		if !seen[`"a";q=1000;w=60`] || !seen[`"a";q=20;w=60`] {
			t.Errorf("RateLimit-Policy was %v", seen)
		}
	})
}
