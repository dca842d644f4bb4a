package sketch_test

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
)

// A limit of 2 per 8 s, for any number of keys, in a mebibyte.
func Example() {
	c, _ := sketch.Fit(2, 8*time.Second, 1<<20)
	w := sketch.New(c)
	const alice = 0x5d1e7a90c4b83f26 // a seeded hash of her name
	for second := range int64(3) {
		now := second * 1e9
		h := w.Lock(alice)
		used, wait := h.Used(now), h.Wait(now, 2, 1)
		if wait == 0 {
			h.Charge(now, 1)
		}
		h.Unlock()
		fmt.Println(used, wait)
	}
	fmt.Println(sketch.Bytes(c) <= 1<<20)
	// Output:
	// 0 0s
	// 1 0s
	// 2 6.999999999s
	// true
}
