// Package sampled counts a random share of events and states the error of the
// estimate. It is for floods in which even the one atomic add of a
// [window.Counter] costs too much, such as packets:
//
//	packets, err := sampled.New(window.Last(time.Minute), 0.001)
//	...
//	s := packets.Sampler() // one per goroutine
//	s.Add(1)
//	...
//	fmt.Println(packets.Sum()) // 51200 (46900 to 55900 at 95 %)
//
// If every event must be counted, as for a limit, use package window or
// ratelimit.
package sampled
