package sketch_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
)

// over returns the time at which more than n of the times are in a window of
// span, or 0. It sorts them.
func over(times []int64, n int, span int64) int64 {
	slices.Sort(times)
	for i := n; i < len(times); i++ {
		if times[i]-times[i-n] < span {
			return times[i]
		}
	}
	return 0
}

func TestOverFindsOneTooMany(t *testing.T) {
	if at := over([]int64{10, 0, 19, 20}, 2, 20); at != 19 {
		t.Errorf("at %d", at)
	}
	if at := over([]int64{10, 0, 20, 30}, 2, 20); at != 0 {
		t.Errorf("at %d", at)
	}
}

// The overcount of a window during a flood of keys that each come once: on average never more than
// each counter's share of the charges. The long form prints the table of the package's
// documentation.
func TestNoise(t *testing.T) {
	size, loads := int64(256<<10), []int{1, 4, 16, 64}
	if os.Getenv("LATELY_LONG") != "" {
		size, loads = 4<<20, []int{1, 2, 4, 8, 16, 32, 64}
	}
	if testing.Short() {
		loads = []int{4, 16}
	}
	unit := int(size / 256) // keys
	for _, n := range []uint64{1, 10, 60, 1000} {
		c, ok := sketch.Fit(n, time.Minute, size)
		if !ok {
			t.Fatal("does not fit")
		}
		for _, load := range loads {
			testNoise(t, c, unit*load)
		}
	}
}

func testNoise(t *testing.T, c sketch.Config, keys int) {
	w := sketch.New(c)
	rnd := newRand(t)
	at, allowed := int64(1e18), 0
	for i := range keys {
		ok, _, _ := w.Take(rnd.Uint64(), at+int64(i)*int64(c.Span)/int64(keys), 1)
		if ok {
			allowed++
		}
	}
	mean, refused := w.Noise(at + int64(c.Span))
	t.Logf("n %d, rows of %d, %d keys: allowed %.3f, too much by %.2f, refused %.3f",
		c.N, c.Counters, keys, float64(allowed)/float64(keys), mean, refused)
	share := float64(allowed) / float64(c.Counters)
	if mean > share*1.2+0.05 {
		t.Errorf("%+v: too much by %.3f on average, a counter's share is %.3f", c, mean, share)
	}
	if share > 3 && mean == 0 && refused == 0 {
		t.Errorf("%+v: no noise after %d keys: it is not measured", c, keys)
	}
}

// The share of fresh keys that would be refused according to Noise is the true share.
func TestNoiseIsTrue(t *testing.T) {
	w := sketch.New(sketch.Config{N: 2, Span: time.Minute, Counters: 4096})
	rnd := newRand(t)
	const at = int64(1e18)
	for range 16_000 {
		w.Take(rnd.Uint64(), at, 1)
	}
	_, said := w.Noise(at)
	refused := 0.0
	for range 10_000 {
		if used := w.Used(rnd.Uint64(), at); used >= 2 {
			refused++
		}
	}
	refused /= 10_000
	t.Logf("said %.3f, is %.3f", said, refused)
	if said < refused-0.08 || said > refused+0.08 || refused < 0.1 || refused > 0.9 {
		t.Errorf("Noise: %.3f, true: %.3f", said, refused)
	}
}
