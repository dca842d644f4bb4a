package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

func ExampleCounter() {
	c, err := window.NewCounter(window.Last(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	c.Add(1)
	c.Add(2)
	fmt.Println(c.Sum(), "in the last minute")
	// Output: 3 in the last minute
}

// The time of an event comes with it, as from a log.
func ExampleCounter_AddAt() {
	c, _ := window.NewCounter(window.Window{Span: 10 * time.Second, Slot: time.Second})
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	for _, second := range []int{0, 4, 3, 9, 12} { // out of order is fine
		c.AddAt(noon.Add(time.Duration(second)*time.Second), 1)
	}
	ok := c.AddAt(noon.Add(-time.Minute), 1) // older than the window

	fmt.Println(c.SumAt(noon.Add(12 * time.Second)))
	fmt.Println(ok, c.Stats().Late)
	// Output:
	// 4
	// false 1
}

func ExampleCounter_AddSum() {
	c, _ := window.NewCounter(window.Last(2 * time.Second))
	for range 3 {
		fmt.Println(c.AddSum(10))
	}
	// Output:
	// 10
	// 20
	// 30
}

// The oldest slot is cut by the window's left edge; its events may be in or out.
func ExampleCounter_BoundsAt() {
	c, _ := window.NewCounter(window.Window{Span: time.Minute, Slot: 10 * time.Second})
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.AddAt(start.Add(3*time.Second), 8)
	c.AddAt(start.Add(45*time.Second), 100)

	lo, hi := c.BoundsAt(start.Add(65 * time.Second))
	fmt.Println(lo, hi)
	fmt.Println(c.EstimateAt(start.Add(65 * time.Second))) // half of that slot is inside
	// Output:
	// 100 108
	// 104
}

func ExampleCounter_CountAt() {
	c, _ := window.NewCounter(window.Last(time.Minute))
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for second := range 60 {
		c.AddAt(start.Add(time.Duration(second)*time.Second), 2)
	}
	now := start.Add(59 * time.Second)

	fmt.Println(c.CountAt(now, 5*time.Second))
	fmt.Println(c.CountAt(now, time.Hour))
	// Output:
	// {10 12 12} <nil>
	// {0 0 0} window: span 1h0m0s: must be positive and at most 1m0s, the longest span here
}

// The slots of the window, oldest first, as for a chart.
func ExampleCounter_SlotsAt() {
	c, _ := window.NewCounter(window.Window{Span: 4 * time.Second, Slot: time.Second})
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.AddAt(noon, 3)
	c.AddAt(noon.Add(2*time.Second), 5)

	for start, count := range c.SlotsAt(noon.Add(2 * time.Second)) {
		fmt.Println(start.Format(time.TimeOnly), count)
	}
	// Output:
	// 11:59:59 0
	// 12:00:00 3
	// 12:00:01 0
	// 12:00:02 5
}

// How fast do things happen: on average, of late, and at most?
func ExampleCounter_RateAt() {
	c, _ := window.NewCounter(window.Last(time.Minute))
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for second := range 60 {
		c.AddAt(noon.Add(time.Duration(second)*time.Second), uint64(second))
	}
	end := noon.Add(time.Minute - 1) // the last moment of second 59

	fmt.Println(c.RateAt(end, time.Minute))
	fmt.Println(c.RateAt(end, 10*time.Second))
	fmt.Println(c.PeakRateAt(end))
	// Output:
	// 29.5 <nil>
	// 54.5 <nil>
	// 59
}
