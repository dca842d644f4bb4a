// Package client asks a running lately server, over its HTTP API.
//
//	c, err := client.New("http://127.0.0.1:7380", client.Config{})
//	...
//	d, err := c.Take(ctx, "login", 1, "192.0.2.1", "ada")
//	if err == nil && !d.Allowed {
//		// refused: d.RetryAfter says for how long
//	}
//
// A decision is the [ratelimit.Decision] that a limiter in the same process would
// have given; times that the server tells in milliseconds are rounded up there. What
// the server would not do is an [*Error] with its code and its reason. Any other error
// is that there was no answer: nobody knows then whether an event was counted, and
// whether to go on is the caller's choice.
//
// Nothing is tried again but the stream of [Client.Events], which connects anew when
// it is lost, after waits with full jitter (M. Brooker, "Exponential Backoff And
// Jitter", 2015).
//
// # When not to use
//
// For decisions in the path of every request a Redis client in any language on the
// server's RESP port is faster: it pipelines. This package is for tools, for what has
// no hurry, and for what has to pass HTTP proxies.
package client
