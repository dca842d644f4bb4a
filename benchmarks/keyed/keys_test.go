package keyed

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// A builder writes the keys "user:000000" to "user:999999", or with as many
// digits as n of them need, into one buffer.
type builder struct{ buf []byte }

const prefix = "user:"

func newBuilder(n int) *builder {
	digits := 6
	for p := 1_000_000; p < n; p *= 10 {
		digits++
	}
	// Of the buffer's 128 bytes the key is the first: no other builder shares
	// its cache line.
	buf := make([]byte, len(prefix)+digits, 128)
	copy(buf, prefix)
	return &builder{buf}
}

// key returns the key of that number, in the buffer: it is good until the next
// call.
func (k *builder) key(id uint32) string {
	for i := len(k.buf) - 1; i >= len(prefix); i-- {
		k.buf[i] = '0' + byte(id%10)
		id /= 10
	}
	return unsafe.String(&k.buf[0], len(k.buf))
}

// all returns the first n keys as strings of their own.
func all(n int) []string {
	k := newBuilder(n)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strings.Clone(k.key(uint32(i)))
	}
	return keys
}

// draws is how many draws a sequence has before it begins again; a power of two.
const draws = 1 << 22

// zipf draws key numbers below n so that the k-th most frequent one comes in
// proportion to k^-1.1. Which keys are frequent has nothing to do with the
// order in which they were inserted.
func zipf(n int) []uint32 {
	rng := rand.New(rand.NewPCG(1, 1))
	z := rand.NewZipf(rng, 1.1, 1, uint64(n-1))
	perm := rng.Perm(n)
	seq := make([]uint32, draws)
	for i := range seq {
		seq[i] = uint32(perm[z.Uint64()])
	}
	return seq
}

// uniform draws key numbers below n, each as likely as the other.
func uniform(n int) []uint32 {
	rng := rand.New(rand.NewPCG(1, 2))
	seq := make([]uint32, draws)
	for i := range seq {
		seq[i] = rng.Uint32N(uint32(n))
	}
	return seq
}

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
		if got := newBuilder(tt.n).key(tt.id); got != tt.want {
			t.Errorf("key %d of %d is %q, want %q", tt.id, tt.n, got, tt.want)
		}
	}
}

// With an exponent of 1.1 the most frequent of 10,000 keys has about one event
// in seven; with equal chances none has one in a thousand.
func TestDistributions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		seq      []uint32
		min, max float64
	}{{"zipf", zipf(10_000), 0.10, 0.20}, {"uniform", uniform(10_000), 0, 0.001}} {
		counts := make([]int, 10_000)
		for _, id := range tt.seq {
			counts[id]++
		}
		most := 0
		for _, n := range counts {
			most = max(most, n)
		}
		if share := float64(most) / draws; share < tt.min || share > tt.max {
			t.Errorf("%s: the most frequent key has a share of %.4f, want %v to %v", tt.name, share, tt.min, tt.max)
		}
	}
}
