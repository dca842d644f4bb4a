package latelyhttp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/ratelimit"
)

// What clients are told of a limit, by algorithm.
func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		limits    []ratelimit.Limit
		algorithm ratelimit.Algorithm
		want      string
	}{
		{[]ratelimit.Limit{{N: 60, Span: time.Minute}}, ratelimit.Sliding, `"a";q=60;w=60`},
		{[]ratelimit.Limit{{N: 0, Span: 1 * time.Millisecond}}, ratelimit.Exact, `"a";q=0;w=1`},
		{[]ratelimit.Limit{{N: ratelimit.MaxSliding, Span: ratelimit.MaxSpan}}, ratelimit.Sliding, `"a";q=4294967295;w=315360000`},
		{[]ratelimit.Limit{{N: 5, Span: time.Second}, {N: 9, Span: 2500 * time.Millisecond}}, ratelimit.Weighted, `"a/1s";q=5;w=1|"a/2500ms";q=9;w=3`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second}}, ratelimit.GCRA, `"a";q=10;w=1`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second, Burst: 100}}, ratelimit.GCRA, `"a";q=100;w=10`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second, Burst: 5}}, ratelimit.TokenBucket, `"a";q=5;w=1`},
		{[]ratelimit.Limit{{N: 3, Span: time.Minute, Burst: 10}}, ratelimit.LeakyBucket, `"a";q=10;w=200`},
		{[]ratelimit.Limit{{N: 0, Span: ratelimit.MaxSpan, Burst: ratelimit.MaxSliding}}, ratelimit.TokenBucket, `"a";q=4294967295;w=315360000`},
		{[]ratelimit.Limit{{N: 1, Per: ratelimit.PerSecond}, {N: 2, Per: ratelimit.PerDay}, {N: 3, Per: ratelimit.PerMonth}}, ratelimit.Calendar, `"a/second";q=1;w=1|"a/day";q=2;w=86400|"a/month";q=3;w=2678400`},
		{[]ratelimit.Limit{{N: 7, Span: time.Minute}}, ratelimit.InFlight, `"a";q=7;qu="concurrent-requests"`},
	} {
		r := limited(t, "a", 1, time.Minute)
		r.Limits, r.Algorithm = c.limits, c.algorithm
		got := ""
		p := newRulePolicy(&r, 0, false)
		for _, l := range p.limits {
			if _, err := parseSF([]string{l.item}); err != nil {
				t.Errorf("%s: %v", l.item, err)
			}
			if got != "" {
				got += "|"
			}
			got += l.item
		}
		if got != c.want {
			t.Errorf("%v %+v: %s; want %s", c.algorithm, c.limits, got, c.want)
		}
	}
}

// r stays within q, and t within Retry-After, for every algorithm.
func TestFieldsOfEveryAlgorithm(t *testing.T) {
	rnd := seeded(t)
	for _, name := range ratelimit.Algorithms() {
		a, err := ratelimit.AlgorithmNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r := limited(t, "a", 5, time.Minute)
		r.Algorithm = a
		r.Limits = append(r.Limits, ratelimit.Limit{N: 100, Span: time.Hour})
		if a == ratelimit.GCRA || a == ratelimit.TokenBucket {
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

// The quota of an adaptive limit is the one that holds now.
func TestAdaptivePolicy(t *testing.T) {
	r := limited(t, "a", 1000, time.Minute)
	r.Adapt = &ratelimit.Adapt{Span: time.Second, Steps: []lately.Step{{Below: 50, Limit: 1000}}, Above: 20}
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
