package window_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/window"
)

// The money that came in and went out in the last hour. Amounts are whole cents,
// so nothing is rounded.
func ExampleSums() {
	const in, out = 0, 1
	flow, err := window.NewSums(window.Last(time.Hour), 2)
	if err != nil {
		log.Fatal(err)
	}

	flow.Add(in, 250_00)
	flow.Add(out, 19_99)
	flow.Add(in, 5_01)

	sums := flow.AppendSums(nil) // of one moment
	fmt.Println("in: ", sums[in])
	fmt.Println("out:", sums[out])
	fmt.Println("net:", sums[in]-sums[out])
	// Output:
	// in:  25501
	// out: 1999
	// net: 23502
}

// Amounts with a time of their own, from a file for example.
func ExampleSums_AddAt() {
	const in, out = 0, 1
	flow, err := window.NewSums(window.Window{Span: 5 * time.Minute, Slot: time.Second}, 2)
	if err != nil {
		log.Fatal(err)
	}

	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	flow.AddAt(noon, in, 100)
	flow.AddAt(noon.Add(4*time.Minute), out, 30)
	flow.AddAt(noon.Add(3*time.Minute), out, 20) // out of order

	fmt.Println(flow.AppendSumsAt(noon.Add(4*time.Minute), nil))
	fmt.Println(flow.AppendSumsAt(noon.Add(6*time.Minute), nil))
	// Output:
	// [100 50]
	// [0 50]
}
