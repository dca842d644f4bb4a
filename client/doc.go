// Package client has two clients of lately servers. A [Fleet] makes decisions in the path of
// every request: it spreads keys over several servers, and its callers share one RESP
// connection to each. A [Client] uses the HTTP API of one server: it has all of its
// requests, and passes HTTP proxies.
//
//	f, err := client.NewFleet(client.FleetConfig{Nodes: []string{"10.0.0.1:6380", "10.0.0.2:6380"}})
//	...
//	defer f.Close()
//	d, err := f.Take(ctx, "login", 1, "192.0.2.1", "ada")
//	if err == nil && !d.Allowed {
//		// refused: d.RetryAfter says for how long
//	}
//
// A Client has a Take of the same form:
//
//	c, err := client.New("http://127.0.0.1:7380", client.Config{})
//	...
//	d, err := c.Take(ctx, "login", 1, "192.0.2.1", "ada")
//
// A decision is the [ratelimit.Decision] that a limiter in the same process would return,
// with times rounded up to milliseconds. If the server refuses a request, the error is an
// [*Error] with its code and its reason. Any other error of a Client means that there was no
// answer: the event may or may not have been counted. A Fleet knows more, see
// [ErrUnanswered].
//
// No request is repeated that could count twice. The stream of [Client.Events] and the
// connections of a Fleet are made again when they are lost, after waits with full jitter
// (M. Brooker, "Exponential Backoff And Jitter", 2015).
//
// # When not to use
//
// For one server and another language, use a Redis client on the server's RESP port.
package client
