package lately_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately"
)

// How many packets a second, from one in a thousand.
func ExampleSampled() {
	packets, err := lately.NewSampled(lately.Last(time.Minute), 0.001)
	if err != nil {
		log.Fatal(err)
	}

	s := packets.Sampler() // one for each goroutine that receives packets
	for range 5_000_000 {
		s.Add(1)
	}

	lo, hi := packets.Sum().Interval(5)
	fmt.Println(lo < 5_000_000 && 5_000_000 < hi)
	fmt.Println(lately.Estimate{Counted: 5012, P: 0.001})
	// Output:
	// true
	// 5010000 (4870000 to 5160000 at 95 %)
}
