package sampled_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately/sampled"
	"github.com/lately-go/lately/window"
)

// How many packets in the last minute, from one in a thousand.
func ExampleCounter() {
	packets, err := sampled.New(window.Last(time.Minute), 0.001)
	if err != nil {
		log.Fatal(err)
	}

	s := packets.Sampler() // one for each goroutine that receives packets
	for range 5_000_000 {
		s.Add(1)
	}

	lo, hi := packets.Sum().Interval(5) // sure but for one time in a million
	fmt.Println(lo < 5_000_000 && 5_000_000 < hi)
	// Output: true
}

// The meaning of 5012 counted packets, if one in a thousand is counted.
func ExampleEstimate() {
	packets := sampled.Estimate{Counted: 5012, P: 0.001}
	lo, hi := packets.Interval(2.58) // 99 %
	fmt.Println(packets)
	fmt.Printf("%.0f, give or take %.0f; from %.0f to %.0f\n", packets.Count(), packets.StdErr(), lo, hi)
	// Output:
	// 5010000 (4870000 to 5160000 at 95 %)
	// 5012000, give or take 70760; from 4832243 to 5198425
}
