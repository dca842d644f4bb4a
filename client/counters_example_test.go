package client_test

import (
	"context"
	"fmt"
	"log"
	"time"
)

// The keys that are refused most, with the reason.
func ExampleClient_Refused() {
	c, stop := connect("version: 1\nlimits: [{name: login, when: {path: /login}, key: client, limit: 2 per 10m}]\n")
	defer stop()
	ctx := context.Background()
	for range 5 {
		if _, err := c.Check(ctx, map[string]string{"client": "192.0.2.1", "path": "/login"}, 1); err != nil {
			log.Fatal(err)
		}
	}
	keys, err := c.Refused(ctx, 10, time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range keys {
		fmt.Println(k.Values(), "was refused", k.Estimate, "times")
	}
	why, err := c.Explain(ctx, "192.0.2.1") // or a user, or a path
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range why.Refusals {
		fmt.Println(r.Sentence)
	}
	// Output:
	// [192.0.2.1] was refused 3 times
	// login: for requests with path /login, a client may make 2 requests per 10m; the 3rd within any 10m is refused.
}
