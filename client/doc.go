// Package client is a client of the HTTP API of a lately server.
//
//	c, err := client.New("http://127.0.0.1:7380", client.Config{})
//	...
//	d, err := c.Take(ctx, "login", 1, "192.0.2.1", "ada")
//	if err == nil && !d.Allowed {
//		// refused: d.RetryAfter says for how long
//	}
//
// A decision is the [ratelimit.Decision] that a limiter in the same process would return,
// with times rounded up to milliseconds. If the server refuses a request, the error is an
// [*Error] with its code and its reason. Any other error means that there was no answer:
// the event may or may not have been counted.
//
// Only the stream of [Client.Events] is retried: it connects again when it is lost, after
// waits with full jitter (M. Brooker, "Exponential Backoff And Jitter", 2015).
//
// # When not to use
//
// For decisions in the path of every request, a Redis client in any language on the
// server's RESP port is faster, since it pipelines. This package is for tools, for
// occasional requests, and for connections through HTTP proxies.
package client
