// Package httpapi is the HTTP listener of a server: a JSON API for what an
// [engine.Engine] can do, forward-auth for proxies, server-sent events, metrics,
// health checks, and the web console.
//
//	s, err := httpapi.New(httpapi.Config{Config: listen.Config{Engine: e}})
//	...
//	err = s.Serve(ctx, listener)
//
// # Routes
//
// One table has all routes. The router, the roles, the parameters of queries, the OpenAPI
// document at /openapi.json, and the tests that try every route with every role come from
// it. A route without a role does not compile.
//
// # Authorization
//
// A client authenticates with a token, in "Authorization: Bearer ..." or
// "X-Lately-Token: ..."; a browser logs in with one and gets a session cookie. GETs need
// the role read; decisions and adds need check; bans, resets and rules need
// admin. Without tokens, every client is an admin, which is for loopback only. In any case
// the Host header must be a name of this server, so that a web page cannot reach
// it by DNS rebinding, and requests that change something must be JSON and must not come
// from a page of another origin.
//
// # Limits
//
// A header is read for at most 2 seconds and 64 KiB, a request for 5 seconds, a body up to
// 1 MiB and 32 levels of nesting, without unknown members; an answer is written for at
// most 10 seconds, and an idle connection is closed after 60. Subscribers that do not read
// are disconnected within 5 seconds. When the tokens change, or a subscriber's session
// ends, its stream ends within a second. A panic ends one request, and is logged.
package httpapi
