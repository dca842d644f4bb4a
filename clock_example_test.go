package lately_test

import (
	"fmt"
	"log"
	"time"

	"github.com/lately-go/lately"
)

// One clock serves all the busy counters of a program.
func ExampleClock() {
	clock, err := lately.NewClock(0)
	if err != nil {
		log.Fatal(err)
	}
	defer clock.Close()

	packets, err := lately.NewCounterOn(clock, lately.Last(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	for range 1_000_000 {
		packets.Add(1)
	}
	fmt.Println(packets.Sum() > 0)
	// Output: true
}
