package limit_test

import (
	"fmt"
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/limit"
)

// Two a second, on a log: the third event gets the time to wait.
func ExampleCounter() {
	m, err := limit.New(limit.Config{Algorithm: limit.Sliding, N: 2, Span: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := make([]uint64, m.Words())
	b := m.Blocks(keytable.NewBudget(math.MaxInt64 / 2))
	const cost = 1
	for _, t := range []int64{0, 300e6, 900e6, 1000e6} {
		used, n := m.Advance(w, b, t), m.Most()
		if cost <= n-min(used, n) && m.Reserve(w, b, cost) {
			m.Charge(w, b, t, cost)
			fmt.Println(time.Duration(t), "allowed")
			continue
		}
		fmt.Println(time.Duration(t), "refused, wait", m.Wait(w, b, t, n, cost))
	}
	// Output:
	// 0s allowed
	// 300ms allowed
	// 900ms refused, wait 100ms
	// 1s allowed
}
