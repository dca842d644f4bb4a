// Package engine is what a server's listeners ask: it holds the rules in force,
// the limiter, the counters and the detectors of hot keys, and is the one place
// where an event is counted and judged, whatever door it came in by.
//
//	e, err := engine.New(engine.Config{Rules: file})
//	...
//	defer e.Close()
//	c := e.Caller()
//	ev := c.Event()
//	ev.SetNamedString("client", "203.0.113.9")
//	d, err := c.Check(ev, 1)
//	if err == nil && !d.Allowed {
//		// refused for d.RetryAfter by the rule d.Rule
//	}
//
// # Time
//
// An Engine judges live, by one clock: the wall clock as it stood when the engine
// was made, plus the time that has passed since. Or it judges by event time, if
// what first comes to it is an event with its time ([Caller.CheckAt]): times are
// as exact as they are given, and an engine that is given the events of a log in
// replay's order decides as replay does. What comes first
// decides for good: one who judges, counts, bans, unbans, refunds, resets or throttles by
// the other clock is refused, and state that is brought back is live. Who only asks
// decides nothing, and is answered by the clock that holds, which in event time
// stands at the newest event.
//
// # Keys
//
// A key is given as its values, in the order of the fields of the rule or counter
// that counts by it; client addresses are folded and paths cleaned as in events, so
// that a key is the same whether it came as an event or by itself. Where there is
// room for one string only, several values are joined by [KeySeparator].
package engine
