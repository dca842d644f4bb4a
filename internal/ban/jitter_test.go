package ban

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// TestJitterBounds has bans of many keys last from Duration to Duration times
// 1 + Jitter, and never longer than Max; over the whole of that range, evenly.
func TestJitterBounds(t *testing.T) {
	for _, c := range []struct {
		policy    Policy
		earlier   uint64
		low, high time.Duration
	}{
		{Policy{For: 10 * time.Minute, Jitter: 0.5}, 0, 10 * time.Minute, 15 * time.Minute},
		{Policy{For: 10 * time.Minute, Jitter: 1}, 5, 10 * time.Minute, 20 * time.Minute},
		{Policy{For: 10 * time.Minute, Jitter: 0.5, Factor: 2}, 2, 40 * time.Minute, time.Hour},
		{Policy{For: 10 * time.Minute, Jitter: 0.5, Factor: 2, Max: 45 * time.Minute}, 7, 30 * time.Minute, 45 * time.Minute},
		{Policy{Steps: []time.Duration{time.Second, time.Hour}, Jitter: 0.1}, 9, time.Hour, 66 * time.Minute},
		{Policy{For: MaxSpan / 2, Jitter: 1}, 0, MaxSpan / 2, MaxSpan},
	} {
		c.policy.Span = time.Second
		if wrong := c.policy.Validate(); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		const keys, parts = 10_000, 20
		var in [parts]int
		for i := range keys {
			d := c.policy.jittered(c.earlier, 1, fmt.Append(nil, i))
			if d < c.low || d > c.high || d%time.Millisecond != 0 {
				t.Fatalf("%+v: the ban of key %d lasts %v, want %v to %v", c.policy, i, d, c.low, c.high)
			}
			in[min(int(parts*float64(d-c.low)/float64(c.high-c.low)), parts-1)]++
		}
		// A twentieth each; ten standard deviations are 218 of 500.
		if lowest, highest := slices.Min(in[:]), slices.Max(in[:]); lowest < 282 || highest > 718 {
			t.Errorf("%+v: bans are spread unevenly: %v", c.policy, in)
		}
	}
}

// TestJitterDependsOnAll checks that the same seed, key and number give the
// same length, and any difference another.
func TestJitterDependsOnAll(t *testing.T) {
	b := &Policy{For: MaxSpan / 2, Jitter: 1}
	seen := map[time.Duration]string{}
	for seed := range uint64(10) {
		for earlier := range uint64(10) {
			for n := range 40 {
				key := make([]byte, n)
				for i := range n + 1 {
					if i < n {
						key[i] = 1
					}
					d, name := b.jittered(earlier, seed, key), fmt.Sprint(seed, earlier, key)
					if d != b.jittered(earlier, seed, key) {
						t.Fatalf("%s: twice two lengths", name)
					}
					if other, ok := seen[d]; ok && other != name {
						t.Fatalf("%s and %s last equally long, %v", name, other, d)
					}
					seen[d] = name
					clear(key)
				}
			}
		}
	}
	// 82,000 lengths of 1.6e11: two are alike with a probability of 2 %, if they
	// were random; they are fixed, and none are.
	if b.jittered(1, 2, nil) == b.jittered(2, 1, nil) {
		t.Error("seed and number are interchangeable")
	}
}

// TestJitterIsForever pins a few lengths: a later version must return the same.
func TestJitterIsForever(t *testing.T) {
	b := &Policy{For: time.Hour, Jitter: 1, Factor: 2, Max: 100 * time.Hour}
	for _, c := range []struct {
		earlier, seed uint64
		key           string
		want          time.Duration
	}{
		{0, 0, "", 72*time.Minute + 3422*time.Millisecond},
		{0, 0, "192.0.2.1", 74*time.Minute + 17155*time.Millisecond},
		{3, 0, "192.0.2.1", 583*time.Minute + 18763*time.Millisecond},
		{math.MaxUint64, math.MaxUint64, "2001:db8::/64", 3075*time.Minute + 55645*time.Millisecond},
	} {
		if got := b.jittered(c.earlier, c.seed, []byte(c.key)); got != c.want {
			t.Errorf("seed %d, key %q, after %d bans: %v, want %v", c.seed, c.key, c.earlier, got, c.want)
		}
	}
}
