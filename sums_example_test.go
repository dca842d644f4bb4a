package lately_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately"
)

// The money that came in and went out in the last hour, in cents.
func ExampleSums() {
	const in, out = 0, 1
	flow, err := lately.NewSums(lately.Last(time.Hour), "in", "out")
	if err != nil {
		log.Fatal(err)
	}

	flow.Add(in, 250_00)
	flow.Add(out, 19_99)
	flow.Add(in, 5_01)

	fmt.Println("in: ", flow.Sum(in))
	fmt.Println("out:", flow.Sum(out))
	fmt.Println("net:", flow.Net(in, out))
	// Output:
	// in:  25501
	// out: 1999
	// net: 23502
}

// Amounts with a time of their own, from a file for example.
func ExampleSums_AddAt() {
	const in, out = 0, 1
	flow, err := lately.NewSums(lately.Window{Span: 5 * time.Minute, Slot: time.Second}, "in", "out")
	if err != nil {
		log.Fatal(err)
	}

	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	flow.AddAt(noon, in, 100)
	flow.AddAt(noon.Add(4*time.Minute), out, 30)
	flow.AddAt(noon.Add(3*time.Minute), out, 20) // out of order

	fmt.Println(flow.NetAt(noon.Add(4*time.Minute), in, out))
	fmt.Println(flow.NetAt(noon.Add(6*time.Minute), in, out))
	// Output:
	// 50
	// -50
}

// A thousand cents are ten, which plain float64 addition misses.
func ExampleFloatSums() {
	amounts, err := lately.NewFloatSums(lately.Last(time.Hour), "paid")
	if err != nil {
		log.Fatal(err)
	}
	plain := 0.0
	for range 1000 {
		amounts.Add(0, 0.01)
		plain += 0.01
	}
	fmt.Println(amounts.Sum(0) == 10, plain == 10)
	// Output: true false
}
