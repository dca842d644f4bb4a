package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A process ends with a client at its limit. The next process continues with these counts.
func ExampleLimiter_Export() {
	key, _ := match.NewKey(match.Fold{}, "client")
	set, _ := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-client", Key: key, Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	})

	before, _ := ratelimit.NewMemory(set, ratelimit.Config{})
	l := ratelimit.Over(set, before)
	takeKey(l, "192.0.2.1")
	takeKey(l, "192.0.2.1")
	var file [][]byte
	for chunk := range before.Export(l.Now()) {
		file = append(file, append([]byte(nil), chunk...))
	}

	after, _ := ratelimit.NewMemory(set, ratelimit.Config{})
	l = ratelimit.Over(set, after)
	for _, chunk := range file {
		if _, err := after.Import(l.Now(), chunk); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(takeKey(l, "192.0.2.1").Allowed, takeKey(l, "192.0.2.2").Allowed)
	// Output: false true
}
