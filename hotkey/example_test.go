package hotkey_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

// A path is hot for a minute once it was asked for three times in a second.
func ExampleDetector() {
	key, err := match.NewKey(match.Fold{}, "path")
	if err != nil {
		log.Fatal(err)
	}
	set, err := hotkey.NewSet(hotkey.Rule{
		Name: "product", Key: key, When: match.When{Path: []string{"/product/*"}},
		Threshold: 3, Span: time.Second, Hold: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	detector, err := hotkey.NewDetector(set, hotkey.DetectorConfig{})
	if err != nil {
		log.Fatal(err)
	}

	var event match.Event
	event.SetString(match.Path, "/product/7")
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var edges []hotkey.Edge
	for i := range 6 {
		now := start.Add(time.Duration(i) * 200 * time.Millisecond)
		edges = detector.AddAt(now, &event, edges[:0]) // Add(&event, ...) counts now
		for _, edge := range edges {
			fmt.Printf("event %d: %s is hot until %s\n", i+1, edge.Key, edge.Until.UTC().Format(time.TimeOnly))
		}
	}
	fmt.Println(detector.HotAt(start.Add(time.Minute), 0, "/product/7"))
	fmt.Println(detector.HotAt(start.Add(2*time.Minute), 0, "/product/7"))
	// Output:
	// event 3: /product/7 is hot until 12:01:00
	// true
	// false
}
