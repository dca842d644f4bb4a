package sketch_test

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/sketch"
)

// A limit of 2 per 8 s, for any number of keys, in a mebibyte.
func Example() {
	c, _ := sketch.Fit(sketch.Config{N: 2, Span: 8 * time.Second}, 1<<20)
	w, err := sketch.New(c)
	if err != nil {
		panic(err)
	}
	const alice = 0x5d1e7a90c4b83f26 // a seeded hash of her name
	for second := range int64(3) {
		ok, used, wait := w.Take(alice, second*1e9, 1)
		fmt.Println(ok, used, wait)
	}
	fmt.Println(sketch.Bytes(c) <= 1<<20)
	// Output:
	// true 0 0s
	// true 1 0s
	// false 2 6.999999999s
	// true
}
