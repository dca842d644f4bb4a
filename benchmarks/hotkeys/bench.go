package hotkeys

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/benchmarks/drive"
	"github.com/lately-go/lately/benchmarks/keys"
)

// Bench measures rows for 100 and 1,000 hot keys, among as many keys as the numbers in
// numbers say, with one goroutine for each core. All rows get the same strings, since the
// peers keep those of the keys that they report.
func Bench(b *testing.B, rows []Row, numbers string, cores int) {
	for text := range strings.SplitSeq(numbers, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil || n <= 0 {
			b.Fatalf("-numbers %q: %q must be a positive number", numbers, text)
		}
		own := keys.All(n)
		for _, dist := range []string{"zipf", "uniform"} {
			for _, row := range rows {
				for _, k := range []int{100, 1000} {
					b.Run(fmt.Sprintf("keys=%d/op=%s/k=%d/subject=%s", n, dist, k, row.Name), func(b *testing.B) {
						bench(b, row.New(k, n, cores > 1), own, keys.Sequence(dist, n), cores)
					})
				}
			}
		}
	}
}

// bench counts each key once, and then measures events in the order of seq.
func bench(b *testing.B, c Counter, own []string, seq []uint32, cores int) {
	add := c.Worker()
	for _, key := range own {
		add(key)
	}
	drive.Parallel(b, cores, func(i int) func(int) {
		add, at := c.Worker(), i*(keys.Draws/cores)
		return func(count int) {
			for range count {
				add(own[seq[at%keys.Draws]])
				at++
			}
		}
	})
}

// Test reports an error for each row that does not count the busiest of 50 keys.
func Test(t *testing.T, rows []Row) {
	all := keys.All(50)
	for _, row := range rows {
		for _, shared := range []bool{false, true} {
			c := row.New(100, len(all), shared)
			if c.Count == nil {
				continue
			}
			add := c.Worker()
			for i, key := range all {
				for range i + 1 {
					add(key)
				}
			}
			if got := c.Count(all[49]); got != 50 {
				t.Errorf("%s, shared %t: the busiest key came %d times, want 50", row.Name, shared, got)
			}
		}
	}
}
