// Package window counts events in sliding windows, exactly and at memory speed.
//
//	c, err := window.NewCounter(window.Last(time.Minute))
//	...
//	c.Add(1)         // an event happens
//	n := c.Sum()     // events in the last minute
//
// # Windows and slots
//
// A [Window] is the last Span of time, divided into slots of equal width. [Last]
// chooses the slots; Window{Span: 10 * time.Second, Slot: time.Second} sets them.
// The slot number of a time is the time divided by the width of a slot, rounded
// down. It is absolute, so slots of the same width begin at the same time in all
// windows.
//
// Because events are counted per slot and not kept one by one, a window is small and fast.
// The cost is at its left edge, which cuts through a slot. [Counter.Bounds] returns lo,
// the count of the slots wholly inside, and hi, lo and the count of the slot that is cut.
// The true count lies in [lo, hi]. [Counter.Sum] is lo. To display one figure, use
// [Counter.Estimate]; for a span shorter than the window, [Counter.Count]. Counts are
// exact within these bounds: no add is lost or counted twice, with any number of
// goroutines and any changes of the clocks.
//
// # Which type
//
//   - [Counter]: one window. Start here.
//   - [Table]: one or several windows for each of many keys, within a memory
//     budget: the busiest keys, the count of any key.
//   - [Rollup]: many windows, from a second to thirty days, from one add.
//   - [Sums]: signed amounts instead of events, several in one window, such as
//     inflow and outflow of money.
//   - [Recent]: the events of the window themselves, bounded in number.
//
// Package sampled counts a random share of events.
//
// # Now, and the time of an event
//
// There are two ways to give a time. The short form of a method uses the current time, read
// from the monotonic clock once per call. The form with At takes a time as its first
// argument, such as the time of a log line, in any order:
//
//	ok := c.AddAt(line.Time, 1)
//	n := c.SumAt(line.Time)
//
// An event older than the window is refused and counted in [Stats].Late. An event
// far in the future would move the window there and empty it. Set [Window.Ahead],
// and such an event is refused and counted in [Stats].Future until a second one
// confirms it.
//
// No clock can be injected: tests pass times to the methods with At, or call the
// others in a testing/synctest bubble.
//
// # Cost
//
// An add to a Counter takes 30 ns, 24 of them for the clock, and 11 to 12 ns with
// AddAt. A read costs about a nanosecond per slot. Idle time costs nothing. A Counter of
// 60 slots takes about 700 bytes. Nothing runs in the background. Each type states its
// own cost.
//
// # When not to use it
//
// To enforce a limit that must never be exceeded, an add followed by a read is not
// enough: two goroutines can both pass. Use package ratelimit. To count since the
// start of the program, use an atomic.Uint64.
//
// # Dependencies and compatibility
//
// The package imports the standard library only. It follows semantic versioning:
// before version 1 names may change, as the change log lists. The figures in these
// comments are measurements, not promises.
package window
