package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

// Eight windows, from 5 minutes to a day, from one add.
func ExampleRollup() {
	requests, err := window.NewRollup(window.RollupConfig{})
	if err != nil {
		log.Fatal(err)
	}

	// A request every 10 seconds, for a day.
	t := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for range 24 * 360 {
		t = t.Add(10 * time.Second)
		requests.AddAt(t, 1)
	}

	for i, c := range requests.AppendCountsAt(t.Add(time.Second), nil) {
		fmt.Printf("%9v: %d to %d\n", requests.Spans()[i], c.Lo, c.Hi)
	}
	// Output:
	//      5m0s: 30 to 31
	//     10m0s: 60 to 61
	//     30m0s: 178 to 181
	//    1h0m0s: 355 to 361
	//    3h0m0s: 1063 to 1081
	//    6h0m0s: 2125 to 2161
	//   12h0m0s: 4249 to 4321
	//   24h0m0s: 8497 to 8640
}

// Any list of spans, live.
func ExampleRollup_Count() {
	logins, err := window.NewRollup(window.RollupConfig{
		Spans: []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	logins.Add(3)
	fmt.Println(logins.Count(30 * 24 * time.Hour))
	// Output: {3 3 3} <nil>
}
