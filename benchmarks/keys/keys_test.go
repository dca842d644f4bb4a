package keys

import "testing"

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		n    int
		id   uint32
		want string
	}{
		{10_000, 42, "user:000042"},
		{1_000_000, 999_999, "user:999999"},
		{10_000_000, 1, "user:0000001"},
	} {
		if got := NewBuilder(tt.n).Key(tt.id); got != tt.want {
			t.Errorf("key %d of %d is %q, want %q", tt.id, tt.n, got, tt.want)
		}
	}
}

// With an exponent of 1.1 the most frequent of 10,000 keys has about one event
// in seven; with equal chances none has one in a thousand.
func TestDistributions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		min, max float64
	}{{"zipf", 0.10, 0.20}, {"uniform", 0, 0.001}} {
		counts := make([]int, 10_000)
		for _, id := range Sequence(tt.name, 10_000) {
			counts[id]++
		}
		most := 0
		for _, n := range counts {
			most = max(most, n)
		}
		if share := float64(most) / Draws; share < tt.min || share > tt.max {
			t.Errorf("%s: the most frequent key has a share of %.4f, want %v to %v", tt.name, share, tt.min, tt.max)
		}
	}
}

func TestAllAreStringsOfTheirOwn(t *testing.T) {
	all := All(3)
	if all[0] != "user:000000" || all[1] != "user:000001" || all[2] != "user:000002" {
		t.Errorf("the first three keys are %q", all)
	}
}
