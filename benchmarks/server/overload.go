package main

import (
	"fmt"
	"time"
)

// overload asks with as many connections as keep the server busy, and then with five
// times as many for as long as d: what is answered must not fall, nor memory grow.
func overload(d time.Duration, conns, keys int) error {
	fmt.Println("| asked for | connections | for | a second | p50 | p99 | memory of the server |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|")
	for _, what := range []string{"TAKE", "POST /v1/take"} {
		if err := overloadBy(what, d, conns, keys); err != nil {
			return err
		}
	}
	return nil
}

func overloadBy(what string, d time.Duration, conns, keys int) error {
	lately, err := startSelf("lately", "-serve")
	if err != nil {
		return err
	}
	defer lately.stop()
	var r *row
	for _, x := range rowsOf(lately, lately, nil) {
		if x.what == what && x.at == 1 {
			r = x
		}
	}
	for _, x := range []load{{d / 6, conns, keys}, {d, 5 * conns, keys}, {d / 6, conns, keys}} {
		if err := r.sample(x); err != nil {
			return err
		}
		s := r.samples[len(r.samples)-1]
		fmt.Printf("| %s | %d | %v | %.0f | %v | %v | %s |\n", what, x.conns, x.d, s.rate, s.p50.Round(time.Microsecond), s.p99.Round(time.Microsecond), lately.memory())
	}
	return nil
}
