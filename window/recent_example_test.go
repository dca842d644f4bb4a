package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

// The trades in the last five minutes, at most a thousand.
func ExampleRecent() {
	type trade struct {
		symbol string
		amount int
	}
	trades, err := window.NewRecent[trade](window.RecentConfig{Span: 5 * time.Minute, Max: 1000})
	if err != nil {
		log.Fatal(err)
	}

	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	trades.AddAt(noon, trade{"A", 100})
	trades.AddAt(noon.Add(2*time.Minute), trade{"B", 20})
	trades.AddAt(noon.Add(time.Minute), trade{"C", 3}) // late, and put in its place

	for _, e := range trades.AppendAt(noon.Add(6*time.Minute), nil) {
		fmt.Println(e.Time.Format(time.TimeOnly), e.Value.symbol, e.Value.amount)
	}
	fmt.Println(trades.Stats().Dropped, "dropped")
	// Output:
	// 12:02:00 B 20
	// 0 dropped
}

// The last three errors, however long ago in the hour.
func ExampleRecent_Append() {
	errors, err := window.NewRecent[string](window.RecentConfig{Span: time.Hour, Max: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"disk full", "no route", "no route", "timeout"} {
		errors.Add(text)
	}
	for _, e := range errors.Append(nil) {
		fmt.Println(e.Value)
	}
	fmt.Println(errors.Stats().Dropped, "older")
	// Output:
	// no route
	// no route
	// timeout
	// 1 older
}
