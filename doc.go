// Package lately answers one question, how many, lately?, exactly and at memory
// speed.
//
//	c, err := lately.NewCounter(lately.Last(time.Minute))
//	...
//	c.Add(1)         // something happened
//	n := c.Sum()     // how often, in the last minute
//
// # Windows and slots
//
// A [Window] is the last Span of time, cut into slots of equal width. [Last]
// picks the slots; Window{Span: 10 * time.Second, Slot: time.Second} sets them.
// The slot of a time is the time divided by the slot's width, rounded down: it
// is absolute, so two counters with equal slots agree on where a slot begins.
//
// Counting into slots, and not one by one, is what makes a window small and
// fast. The price is the left edge of the window, which cuts through a slot.
// [Counter.Bounds] returns lo, the slots wholly inside, and hi, lo and the slot
// that is cut: the true count is one of them or between. [Counter.Sum] is lo.
// Within these bounds counts are exact: no add is lost and none doubled, with
// any number of goroutines and whatever the clocks do.
//
// # Which type
//
//   - [Counter]: one window. Start here.
//   - [Table]: a window, or several, for each of many keys, under a budget of
//     bytes: the busiest, any one's count.
//   - [Rollup]: many windows, from a second to thirty days, from one add.
//   - [Sums], [FloatSums]: amounts instead of events, several sums in one window:
//     money in, money out, net.
//   - [Recent]: the events of the window themselves, bounded in number.
//   - [Sampled]: counting so cheaply that a flood does not matter, with its error.
//
// [Steps] turns a measured rate into a limit that follows it without flapping.
// A [Clock] makes adds to a hot counter two to three times as fast, for a stated
// lag.
//
// # Now, and the time of an event
//
// Each verb has two forms. The short one is about now, read from the monotonic
// clock once a call. The other takes the time of the event, which may come from
// anywhere, a log line or a message, and in any order:
//
//	ok := c.AddAt(line.Time, 1)
//	n := c.SumAt(line.Time)
//
// An event older than the window is refused, and counted in [Counter.Late].
// An event far in the future would move the window there and so empty it; set
// [Window.Ahead] to have it refused, and counted in [Counter.Future], until a
// second one confirms it.
//
// There is no clock to inject: tests pass times to the long forms, or run the
// short ones in a testing/synctest bubble.
//
// # Cost
//
// An add is a clock reading and one atomic step, 30 ns of which the clock takes
// 24; AddAt with a time at hand, 12; on a coarse [Clock], 11. A read costs about
// a nanosecond for each slot. Idle time costs nothing. Where goroutines on
// several cores add to one counter at once, it spreads them, and adds get faster
// with each core. A window of 60 slots takes 512 bytes for them and about 200 for
// the rest, and as much again for each lane that contention makes it grow.
// Nothing else allocates after the first add (but see [Counter]), and nothing
// runs in the background but a Clock, if there is one.
//
// # When not to use it
//
// For a limit that must never be exceeded, adding and then looking at the sum
// is two steps, and two goroutines can both pass: use package ratelimit. For
// counts since the program started, an atomic.Uint64 is all that is needed.
//
// # Dependencies and compatibility
//
// The package imports the standard library only. It follows semantic
// versioning: before version 1 names may still change, and the change log says
// which. The figures in these comments are not promises; the guarantees are.
package lately
