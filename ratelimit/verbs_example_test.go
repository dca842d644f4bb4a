package ratelimit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// start is the time of the first event in examples that judge at given times.
var start = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// perUser returns a limiter for one rule by user, and its handle.
func perUser(limit ratelimit.Limit) (*ratelimit.Limiter, *ratelimit.RuleLimiter) {
	limiter, err := ratelimit.New(ratelimit.Rule{Name: "per-user", Key: match.MustKey("user"), Limits: []ratelimit.Limit{limit}})
	if err != nil {
		log.Fatal(err)
	}
	users, err := limiter.Rule("per-user")
	if err != nil {
		log.Fatal(err)
	}
	return limiter, users
}

// Peek shows the rest of a limit without using it.
func ExampleRuleLimiter_Peek() {
	_, users := perUser(ratelimit.Per(5, time.Minute))
	users.Take("ada")
	for range 2 {
		d := users.Peek("ada")
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// true 3
	// true 3
}

// Each request brings the limit of the customer's plan.
func ExampleRuleLimiter_TakeLimit() {
	_, users := perUser(ratelimit.Limit{N: 2, Span: time.Minute, AtMost: 100})
	for range 3 {
		fmt.Println(users.TakeLimit(2, 1, "ada").Allowed) // the free plan: 2 a minute
	}
	fmt.Println(users.TakeLimit(100, 1, "ada").Allowed) // after an upgrade, in the same window
	// Output:
	// true
	// true
	// false
	// true
}

// A job waits for its turn, until its context ends.
func ExampleRuleLimiter_Wait() {
	_, users := perUser(ratelimit.Per(1, 100*time.Millisecond))
	users.Take("ada")
	_, err := users.Wait(context.Background(), 1, "ada")
	fmt.Println("in time:", err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, days := perUser(ratelimit.Per(1, 24*time.Hour))
	days.Take("ada")
	_, err = days.Wait(ctx, 1, "ada")
	fmt.Println("in an hour:", err)
	// Output:
	// in time: <nil>
	// in an hour: context deadline exceeded
}

// A job that fails gives back its reservation.
func ExampleReservation_Cancel() {
	_, users := perUser(ratelimit.Per(10, time.Minute))
	job := users.Reserve(10, "ada")
	fmt.Println(job.Decision.Allowed, users.Take("ada").Allowed)
	if err := job.Cancel(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(users.Take("ada").Allowed)
	// Output:
	// true false
	// true
}

// Reset deletes the counts of a key.
func ExampleRuleLimiter_Reset() {
	_, users := perUser(ratelimit.Per(1, time.Hour))
	fmt.Println(users.Take("ada").Allowed, users.Take("ada").Allowed)
	if err := users.Reset("ada"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(users.Take("ada").Allowed)
	// Output:
	// true false
	// true
}

// A higher limit takes effect in the middle of a window, and keeps its counts.
func ExampleLimiter_Update() {
	limiter, users := perUser(ratelimit.Per(2, time.Minute))
	for range 3 {
		users.TakeAt(start, 1, "ada")
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-user", Key: match.MustKey("user"), Limits: []ratelimit.Limit{ratelimit.Per(4, time.Minute)},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := limiter.Update(set); err != nil {
		log.Fatal(err)
	}
	d := users.TakeAt(start, 1, "ada")
	fmt.Println(d.Allowed, d.Remaining)
	// Output: true 1
}

// The worst case of each algorithm for a limit of 60 per minute.
func ExampleLimit_MaxAllowed() {
	limit := ratelimit.Per(60, time.Minute)
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.TwoBucket, ratelimit.GCRA} {
		fmt.Println(a, limit.MaxAllowed(a), limit.MaxLate(a))
	}
	// Output:
	// sliding 60 0s
	// two-bucket 119 1m0s
	// gcra 119 0s
}

// The decisions of each rule so far, for a log or a dashboard.
func ExampleLimiter_Stats() {
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "login", Key: match.MustKey("user"), Limits: []ratelimit.Limit{ratelimit.Per(2, time.Minute)},
	})
	if err != nil {
		log.Fatal(err)
	}
	var e match.Event
	e.SetString(match.User, "ada")
	for range 5 {
		limiter.Take(&e)
	}
	for _, r := range limiter.Stats().Rules {
		fmt.Println(r.Rule+":", r.Allowed, "allowed,", r.Refused, "refused,", r.Keys, "key")
	}
	// Output: login: 2 allowed, 3 refused, 1 key
}
