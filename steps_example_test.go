package lately_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately"
)

// A limit that follows the average of the last minute.
func ExampleSteps() {
	requests, err := lately.NewCounter(lately.Last(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	limits, err := lately.NewSteps(lately.StepsConfig{
		Steps: []lately.Step{{Below: 1000, Limit: 2000}, {Below: 5000, Limit: 1000}},
		Above: 500,
	})
	if err != nil {
		log.Fatal(err)
	}

	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, n := range []uint64{30_000, 40_000, 290_000} {
		requests.AddAt(noon, n)
		perSecond := requests.RateAt(noon)
		fmt.Println(perSecond, limits.Follow(perSecond))
	}
	// Output:
	// 500 2000
	// 1166.6666666666667 1000
	// 6000 500
}
