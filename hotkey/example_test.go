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
	fmt.Println(detector.HotAt(start.Add(time.Minute), "product", "/product/7"))
	fmt.Println(detector.HotAt(start.Add(2*time.Minute), "product", "/product/7"))
	// Output:
	// event 3: /product/7 is hot until 12:01:00
	// true
	// false
}

func ExampleJD() {
	w, err := hotkey.JD(2 * time.Second)
	fmt.Println(w.Slot, w.Slots(), err)

	_, err = hotkey.JD(time.Hour)
	fmt.Println(err)
	// Output:
	// 400ms 5 <nil>
	// hotkey: JD duration: 1h0m0s: must be whole seconds from 1s to 600s
}

// Counts uses of a key without an event, with the current time.
func ExampleDetector_AddKey() {
	key, err := match.NewKey(match.Fold{}, "user")
	if err != nil {
		log.Fatal(err)
	}
	set, err := hotkey.NewSet(hotkey.Rule{Name: "user", Key: key, Threshold: 2, Span: time.Second, Hold: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	detector, err := hotkey.NewDetector(set, hotkey.DetectorConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		edge, hot, err := detector.AddKey("user", "ada")
		fmt.Println(edge.Key, hot, err)
	}
	fmt.Println(detector.Hot("user", "ada"))
	// Output:
	//  false <nil>
	// ada true <nil>
	// true
}
