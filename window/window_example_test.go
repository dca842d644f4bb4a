package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

// Ten seconds in slots of one: at 12:00:10.5 the slot of 12:00:00 is cut in two.
func ExampleWindow() {
	w := window.Window{Span: 10 * time.Second, Slot: time.Second}
	c, err := window.NewCounter(w)
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.AddAt(noon, 1)
	c.AddAt(noon.Add(9*time.Second), 1)
	fmt.Println(w.Slots())
	fmt.Println(c.BoundsAt(noon.Add(10500 * time.Millisecond)))
	// Output:
	// 10
	// 1 2
}

func ExampleLast() {
	fmt.Println(window.Last(time.Hour).Slot)
	fmt.Println(window.Last(time.Second).Slot, window.Last(time.Second).Slots())
	// Output:
	// 1m0s
	// 15.625ms 64
}

// An event dated 2099 is refused until a second one confirms it.
func ExampleWindow_ahead() {
	c, err := window.NewCounter(window.Window{Span: time.Minute, Ahead: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.AddAt(now, 5)
	fmt.Println(c.AddAt(now.AddDate(73, 0, 0), 1), c.Stats().Future, c.SumAt(now))
	// Output: false 1 5
}

func ExampleNewCounter_error() {
	_, err := window.NewCounter(window.Window{Span: 10 * time.Second, Slot: 3 * time.Second})
	fmt.Println(err)
	// Output: window: span 10s is not a multiple of slot 3s; the slot must divide the span, as 156.25ms does
}
