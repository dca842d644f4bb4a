package accesslogtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Enough clients to use up all IPv4 addresses.
func TestAddressesAreDistinct(t *testing.T) {
	seed := randtest.Seed(t)
	seen := map[string]bool{floodClient: true, crawlerClient: true, probeClient: true}
	for _, a := range crowdClients() {
		seen[a] = true
	}
	all := addresses(250_000, rand.New(rand.NewPCG(seed, 0)))
	for i, a := range all {
		if seen[a] {
			t.Fatalf("address %d, %s, is taken", i, a)
		}
		seen[a] = true
	}
	if six := slices.IndexFunc(all, func(a string) bool { return len(a) > 15 }); six < 0 || six > 8 {
		t.Errorf("the first long IPv6 address has rank %d, want it among the popular", six)
	}
}
