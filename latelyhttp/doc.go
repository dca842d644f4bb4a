// Package latelyhttp limits and bans HTTP requests: a middleware for net/http over a
// [ratelimit.Limiter], which finds the client's address safely.
//
//	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
//	...
//	http.ListenAndServe("localhost:8080", limits.Wrap(mux))
//
// # Client identity
//
// By default the client is the peer of the connection, and no header is trusted.
// Behind proxies, configure their networks: see [IdentityConfig]. Each proxy appends
// the address it saw, so the header is read from the right, and only the part that
// trusted proxies wrote. The part that a client writes is never read.
//
// # Event fields
//
// The middleware fills in the event fields that the limiter's rules use:
//
//	client    the client's address, see Identity
//	method    the request method
//	path      the path; rules see it decoded and dot-cleaned, as in replay
//	object    the same as path
//	pattern   the pattern of the route that matched, see PatternOf
//	query     what follows the '?'
//	host      the requested host: lower case, without port and final dot
//	protocol  HTTP/1.1, HTTP/2.0, ...
//	referer   the Referer header
//	agent     the User-Agent header
//	user      the user name of Basic authentication, verified or not; unusual
//	          encodings are read as servers read them, and those without a
//	          user are "basic:malformed"
//
// The section fields of a rules file, or [ratelimit.SetConfig.Fields], declares others that
// are in a header, a cookie, a bearer token or the query: see [match.Source]. A request that
// has a field several times, with different values, has the value "(ambiguous)".
// [Config.Fields] adds fields that the program computes, and replaces these.
//
// A rule whose condition looks at status, size (bytes of the body) or duration (seconds, such
// as 0.250) counts answers: it refuses a request if its limit is full, and [Middleware.Wrap]
// counts the answer when the handler has returned. With a shared store that takes a round trip
// before the end of the response. New rejects a rule with one of these fields in its key.
//
// A client can avoid a rule by a field that it may omit: add a rule by client. With
// a field that it can invent (user, a header, a cookie), it can use up the limits of
// others and get them banned: ban by client, or by a verified field of
// [Config.Fields]. Since a client can vary the path ("/a", "/A", "/a;b"), use
// pattern as the key of a limit for each route.
//
// # Responses
//
// A refused request gets 429 Too Many Requests with an exact Retry-After: a client that
// waits that long and sends nothing else is allowed. The body is
// application/problem+json (RFC 9457) of a registered type. All judged requests get the
// RateLimit and RateLimit-Policy fields of draft-ietf-httpapi-ratelimit-headers-11, see
// [Headers].
package latelyhttp
