package latelyredis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// BenchmarkImport imports keys of a limit of 100 a minute, each with ten times, to a server that has
// none of them, and to one that has all.
func BenchmarkImport(b *testing.B) {
	const keys = 20_000
	rules := set(b, ratelimit.Rule{Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 100, Span: time.Hour}}})
	memory, err := ratelimit.NewLimiter(rules, ratelimit.Config{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := memory.Rule("per-client")
	if err != nil {
		b.Fatal(err)
	}
	for i := range keys {
		if err := r.Charge(10, fmt.Sprintf("198.18.%d.%d", i>>8, i&255)); err != nil {
			b.Fatal(err)
		}
	}
	server := redis(b)
	for _, name := range []string{"empty", "merge"} {
		b.Run(name, func(b *testing.B) {
			config, n := prefixed(), 0
			for b.Loop() {
				if n++; name == "empty" {
					config = prefixed()
				}
				redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: newStore(b, server.client(b), rules, config), StoreTimeout: time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				copyAll(b, memory, redis, strconv.Itoa(n))
			}
			b.ReportMetric(float64(keys*b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
