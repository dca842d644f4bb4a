// Package engine counts and judges events for all listeners of a server. It holds the rules in force and the
// limiter. Bans, counters, hot keys and reservations have packages of their own, which it joins: listeners reach
// the first three by [Engine.Bans], [Engine.Counters] and [Engine.Hot].
//
//	e, err := engine.New(engine.Config{Rules: file})
//	...
//	defer e.Close()
//	s := e.Session()
//	ev := s.Event()
//	ev.SetNamedString("client", "203.0.113.9")
//	d, err := s.Check(ev, 1, engine.Terms{})
//	if err == nil && !d.Allowed {
//		// refused for d.RetryAfter by the rule d.Rule
//	}
//
// # Time
//
// Requests are judged by one clock: the wall clock at the time when the engine was made,
// plus the monotonic time since. Events of logs that are followed ([Session.CheckLogged])
// are judged at their own times, between the requests. Bans begin and end by these times.
// For the events of a log in the order of replay, the decisions are those of replay.
package engine
