package latelyredis_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
)

// BenchmarkCounters adds to keys of a counter that two processes share, as fast as goroutines can, and prints
// what the log in Redis takes: bytes that are written to it in a second, and its memory.
func BenchmarkCounters(b *testing.B) {
	for _, keys := range []int{100, 100_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			s := own(b)
			admin, config := s.client(b), latelyredis.CountersConfig{}
			nodes := []*countsNode{sharing(b, s.client(b), config), sharing(b, s.client(b), config)}
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprintf("198.18.%d.%d", i>>8, i&255)
			}
			for _, n := range nodes {
				eventually(b, "both share", n.Complete)
			}
			info := func(section, name string) int {
				_, rest, _ := strings.Cut(do(b, admin, "INFO", section), name+":")
				n := must.Get(strconv.Atoi(strings.Fields(rest)[0]))(b)
				return n
			}
			b.ResetTimer()
			before, began := info("stats", "total_net_input_bytes"), time.Now()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if !nodes[0].Add(names[rand.IntN(keys)], 1) {
						b.Error("no memory")
					}
				}
			})
			b.StopTimer()
			took, written := time.Since(began).Seconds(), info("stats", "total_net_input_bytes")-before
			b.ReportMetric(float64(b.N)/took, "adds/s")
			b.ReportMetric(float64(written)/took, "B/s")
			b.ReportMetric(float64(written)/float64(b.N), "B/add")
			size := must.Get(strconv.Atoi(do(b, admin, "MEMORY", "USAGE", "lately:{counters}:log", "SAMPLES", "0")))(b)
			b.ReportMetric(float64(size), "log-B")
			if nodes[0].Unshared() > 0 {
				b.ReportMetric(float64(nodes[0].Unshared()), "unshared")
			}
		})
	}
}
