// Package httpapi is the server's HTTP listener: a JSON API for what an
// [engine.Engine] can do, forward-auth for proxies, server-sent events, metrics,
// health, and the web console.
//
//	s, err := httpapi.New(httpapi.Config{ListenerConfig: engine.ListenerConfig{Engine: e}})
//	...
//	err = s.Serve(ctx, listener)
//
// # Routes
//
// All routes stand in one table: the router, who may ask, what may be in a query,
// what the OpenAPI document at /openapi.json says, and the tests that try every
// route with every role come from it. A route that does not say who may ask for it
// cannot exist.
//
// # Who may ask
//
// A token says who asks, in "Authorization: Bearer ..." or "X-Lately-Token: ...";
// a browser logs in with one and gets a session cookie. GETs need the role read;
// decisions and adds need check; bans, resets, rules and event times need admin.
// Without tokens everyone who can connect is admin, which is for loopback. Whether or
// not there are tokens, a request has to name this server in its Host header, so that
// a web page cannot reach it under a name of its own; requests that change something
// have to be of JSON and must not come from a page of another origin.
//
// # Limits
//
// A header is read for at most 2 seconds and 16 KiB, a request for 5 seconds, a body
// up to 1 MiB and 32 levels of nesting, with nothing in it that is not known; an
// answer is written for at most 10 seconds, and a connection that says nothing is
// closed after 60. Subscribers that do not read what they are sent are cut within 5
// seconds; when the tokens change, or the session has ended by which one was let in,
// his stream ends within a second. A panic is the end of one request, and is logged.
package httpapi
