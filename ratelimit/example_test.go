package ratelimit_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A client may send three requests a second. Once two were refused, the next
// refusal within a minute bans it for ten minutes.
func Example() {
	key, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    key,
		Limits: []ratelimit.Limit{{N: 3, Span: time.Second}},
		Ban:    &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Minute, For: 10 * time.Minute},
	})
	if err != nil {
		log.Fatal(err)
	}

	var event match.Event
	event.SetString(match.Client, "192.0.2.7")
	event.SetString(match.Path, "/login")
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range 7 {
		now := start.Add(time.Duration(i) * 100 * time.Millisecond)
		switch d := limiter.TakeAt(now, &event, 1); { // Take(&event) judges now
		case d.Allowed:
			fmt.Printf("%d: allowed, %d of %d left\n", i+1, d.Remaining, d.Limit)
		case d.BannedUntil.IsZero():
			fmt.Printf("%d: refused, try again in %v\n", i+1, d.RetryAfter)
		default:
			fmt.Printf("%d: banned until %s\n", i+1, d.BannedUntil.UTC().Format(time.TimeOnly))
		}
	}
	// Output:
	// 1: allowed, 2 of 3 left
	// 2: allowed, 1 of 3 left
	// 3: allowed, 0 of 3 left
	// 4: refused, try again in 700ms
	// 5: refused, try again in 600ms
	// 6: banned until 12:10:00
	// 7: banned until 12:10:00
}

// A client may send 100 requests a minute.
func ExampleNew() {
	client, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "per-client", Key: client, Limits: []ratelimit.Limit{{N: 100, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	var request match.Event
	request.SetString(match.Client, "192.0.2.7:49152")
	allowed := 0
	for range 120 {
		if limiter.Take(&request).Allowed {
			allowed++
		}
	}
	fmt.Println(allowed, "of 120 were allowed")
	// Output: 100 of 120 were allowed
}

// Callers that have the values of a key need no event.
func ExampleRuleLimiter() {
	key, err := match.NewKey(match.Fold{}, "user")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "mails", Key: key, Limits: []ratelimit.Limit{{N: 2, Span: time.Hour}},
	})
	if err != nil {
		log.Fatal(err)
	}
	mails, err := limiter.Rule("mails")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		d := mails.Take("ada")
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter > 59*time.Minute)
	}
	fmt.Println(mails.Take("bob").Allowed)
	// Output:
	// true 1 false
	// true 0 false
	// false 0 true
	// true
}

// A reservation contains the outcome of each rule that matches, including shadow rules, which report and refuse nothing.
func ExampleOutcome() {
	client, err := match.NewKey(match.Fold{}, "client")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(
		ratelimit.Rule{Name: "today", Key: client, Limits: []ratelimit.Limit{{N: 100, Span: time.Minute}}},
		ratelimit.Rule{Name: "planned", Key: client, Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}}, Shadow: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	var event match.Event
	event.SetString(match.Client, "192.0.2.7")
	for range 3 {
		r := limiter.Reserve(&event, 1)
		fmt.Println("allowed:", r.Decision.Allowed)
		for _, o := range r.Outcomes {
			fmt.Printf("  %s would refuse: %v\n", limiter.Set().Rules()[o.Rule].Name, o.Refused)
		}
	}
	// Output:
	// allowed: true
	//   today would refuse: false
	//   planned would refuse: false
	// allowed: true
	//   today would refuse: false
	//   planned would refuse: false
	// allowed: true
	//   today would refuse: false
	//   planned would refuse: true
}

// A client may fail to log in twice in ten minutes. The answer shows whether a request failed.
func ExampleLimiter_Take_answer() {
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "failed-logins",
		Key:    match.MustKey("client"),
		When:   match.When{Path: []string{"/login"}, Status: []string{"401"}},
		Limits: []ratelimit.Limit{{N: 2, Span: 10 * time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	var event match.Event
	for _, status := range []string{"401", "200", "401", "401"} {
		event.Reset()
		event.SetString(match.Client, "192.0.2.7")
		event.SetString(match.Path, "/login")
		event.Part = match.Request
		if d := limiter.Take(&event); !d.Allowed {
			fmt.Println("refused by", d.Rule)
			continue
		}
		event.Part = match.Answer
		event.SetString(match.Status, status)
		limiter.Take(&event)
		fmt.Println("answered with", status)
	}
	// Output:
	// answered with 401
	// answered with 200
	// answered with 401
	// refused by failed-logins
}
