package latelyredis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// BenchmarkImport imports keys of a limit of 100 an hour, each with ten times, to a server that has
// none of them, and to one that has all. For a million keys:
//
//	go test -run '^$' -bench Import/1000000 -benchtime 1x ./latelyredis
func BenchmarkImport(b *testing.B) {
	for _, keys := range []int{20_000, 1_000_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) { benchmarkImport(b, keys) })
	}
}

func benchmarkImport(b *testing.B, keys int) {
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
		if err := r.Charge(10, fmt.Sprintf("198.%d.%d.%d", i>>16, i>>8&255, i&255)); err != nil {
			b.Fatal(err)
		}
	}
	server := own(b)
	for _, name := range []string{"empty", "merge"} {
		b.Run(name, func(b *testing.B) {
			config, n := prefixed(), 0
			once := func() {
				if n++; name == "empty" {
					config = prefixed()
				}
				redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: newStore(b, server.client(b), rules, config), StoreTimeout: time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				if done := copyAll(b, memory, redis, strconv.Itoa(n)); done.Keys != keys {
					b.Fatalf("%+v of %d keys", done, keys)
				}
			}
			if name == "merge" {
				once()
			}
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(keys*b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
