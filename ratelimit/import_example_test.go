package ratelimit_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A process ends with a client at its limit. The next process continues with these counts.
func ExampleLimiter_ExportAt() {
	rule := ratelimit.Rule{Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{ratelimit.Per(2, time.Minute)}}
	before, _ := ratelimit.New(rule)
	clients, _ := before.Rule("per-client")
	clients.Take("192.0.2.1")
	clients.Take("192.0.2.1")
	var file [][]byte
	for chunk := range before.ExportAt(before.Now()) {
		file = append(file, bytes.Clone(chunk))
	}

	after, _ := ratelimit.New(rule)
	for _, chunk := range file {
		if _, err := after.ImportAt(after.Now(), chunk); err != nil {
			fmt.Println(err)
		}
	}
	clients, _ = after.Rule("per-client")
	fmt.Println(clients.Take("192.0.2.1").Allowed, clients.Take("192.0.2.2").Allowed)
	// Output: false true
}
