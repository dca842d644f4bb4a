package ratelimit_test

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

func TestAlgorithmNames(t *testing.T) {
	names := limit.Algorithms()
	if want := []string{"sliding", "exact", "two-bucket", "gcra", "leaky-bucket", "fixed", "calendar", "in-flight"}; !slices.Equal(names, want) {
		t.Fatalf("algorithms are %v, want %v", names, want)
	}
	for i, name := range names {
		a, err := limit.AlgorithmNamed(name)
		if err != nil || a != ratelimit.Algorithm(i) || a.String() != name {
			t.Errorf("%q is %v, %v", name, a, err)
		}
	}
	if a, err := limit.AlgorithmNamed(""); err != nil || a != ratelimit.Sliding {
		t.Errorf("no name is %v, %v", a, err)
	}
	if a, err := limit.AlgorithmNamed("token-bucket"); err != nil || a != ratelimit.GCRA {
		t.Errorf("token-bucket is %v, %v", a, err)
	}
	_, err := limit.AlgorithmNamed("Exact")
	wantParts(t, "unknown", err, `algorithm: "Exact"`, "must be sliding, exact", "gcra, token-bucket, leaky-bucket")
	if got := ratelimit.Algorithm(200).String(); got != "algorithm?" {
		t.Errorf("algorithm 200 is %q", got)
	}
	names = append(names, "mine")
	if len(names) == 10 && len(limit.Algorithms()) != 9 {
		t.Error("the list of names can be appended to from outside")
	}
}
