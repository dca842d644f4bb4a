package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/client"
)

// Each user may use 3,000 tokens of a language model a day. The cost of an answer is known at the end of its stream.
func ExampleFleet_Reserve() {
	addr, stop := startNode("version: 1\nlimits: [{name: tokens, key: user, limit: 3000 per 1d}]\n")
	defer stop()
	fleet, err := client.NewFleet(client.FleetConfig{Nodes: []string{addr}})
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	ctx := context.Background()
	for _, used := range []uint64{731, 1500} {
		r, err := fleet.Reserve(ctx, "tokens", 2000, time.Minute, "ada") // no answer has more
		if err != nil {
			log.Fatal(err)
		}
		if !r.Decision.Allowed {
			fmt.Println("refused; tokens left:", r.Decision.Remaining)
			continue
		}
		// Stream the answer, and count its tokens. If this program crashes now, 2,000 stay charged.
		if _, err := fleet.Settle(ctx, r, used); err != nil {
			log.Fatal(err)
		}
		fmt.Println("used:", used)
	}
	d, err := fleet.Peek(ctx, "tokens", 2000, "ada")
	fmt.Println("another answer:", d.Allowed, err)
	// Output:
	// used: 731
	// used: 1500
	// another answer: false <nil>
}

// One reservation charges all rules that match an event: the tokens of the user, and those of its team.
func ExampleClient_ReserveEvent() {
	c, stop := connect(`version: 1
fields: {team: {}}
limits:
- {name: per-user, key: user, limit: 3000 per 1d}
- {name: per-team, key: team, limit: 10_000 per 1d}
`)
	defer stop()
	ctx := context.Background()
	event := map[string]string{"user": "ada", "team": "compilers"}
	r, err := c.ReserveEvent(ctx, event, 2000, time.Minute)
	if err != nil || !r.Decision.Allowed {
		log.Fatal("refused: ", err)
	}
	d, err := c.PeekEvent(ctx, event, 2000) // while the answer is streamed
	fmt.Println(d.Allowed, d.Rule, err)
	if _, err := c.Settle(ctx, r.ID, 731); err != nil {
		log.Fatal(err)
	}
	d, err = c.PeekEvent(ctx, event, 2000)
	fmt.Println(d.Allowed, d.Rule, d.Remaining, err)
	// Output:
	// false per-user <nil>
	// true per-user 269 <nil>
}
