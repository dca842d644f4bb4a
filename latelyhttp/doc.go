// Package latelyhttp limits and bans HTTP requests: a middleware for net/http
// over a [ratelimit.Limiter], and the safe way to find out who a client is.
//
//	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
//	...
//	http.ListenAndServe("localhost:8080", limits.Wrap(mux))
//
// # Client identity
//
// By default the client is the peer of the connection, and no header is
// believed. Behind proxies, name their networks: see [IdentityConfig]. Each
// proxy appends the address it saw, so the header is read from the right, and
// only as long as proxies wrote it. What a client writes into it is never read.
//
// # What rules can look at
//
// The middleware fills in the event fields that the limiter's [ratelimit.Set]
// looks at, and no others:
//
//	client       the client's address, see Identity
//	method       the request method
//	path         the path; rules see it decoded and dot-cleaned, as in replay
//	object       the same as path
//	pattern      the pattern of the route that matched, see PatternOf
//	query        what follows the '?'
//	host         the host asked for: lower case, without port and final dot
//	protocol     HTTP/1.1, HTTP/2.0, ...
//	referer      the Referer header
//	agent        the User-Agent header
//	user         the user name of Basic authentication, verified or not; odd
//	             spellings are read as servers read them, and those that name no
//	             user are "basic:malformed"
//	header:NAME  the first header of that name
//	cookie:NAME  the first cookie of that name
//
// Further fields, and other meanings of these, come from [Config.Fields]. What
// a response has, status and size, is not known when a request is judged: New
// refuses rules that look at it. A field that a client may leave out makes a
// rule that it may leave out as well; such a rule belongs beside one on client.
// One that a client may make up (user, header:NAME, cookie:NAME) lets it use up
// what others have, and get them banned: bans belong on client, or on a field of
// Config.Fields that was verified.
//
// Paths are the client's to vary ("/a", "/A", "/a;b"): a limit for each route
// is keyed by pattern.
//
// # What clients are told
//
// A refused request gets 429 Too Many Requests with a Retry-After that is true:
// a client that waits that long, and does nothing else meanwhile, is admitted.
// The body is application/problem+json (RFC 9457) of a registered type. All
// judged requests get RateLimit and RateLimit-Policy fields as
// draft-ietf-httpapi-ratelimit-headers-11 has them, see [Headers].
package latelyhttp
