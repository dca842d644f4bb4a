// Package latelygrpc puts a [ratelimit.Limiter] before a gRPC server: it judges
// every call, and refuses with a status that says what to do about it.
//
//	i, err := latelygrpc.New(limiter, latelygrpc.Config{})
//	...
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(i.Unary),
//		grpc.ChainStreamInterceptor(i.Stream),
//	)
//
// # What a call is to a rule
//
// A call is an event with these fields; only those that the rules look at are
// filled in.
//
//	client       the caller's address, see below
//	method       the full method, /package.Service/Method
//	path         the same, so that a rule on path patterns says the same of a
//	             call and of its line in a proxy's access log
//	object       the same as path
//	pattern      the same as path
//	kind         "call", or "message" for one that a client sends in a stream
//	host         the :authority: lower case, without port and final dot
//	agent        the user-agent
//	referer      the referer
//	header:NAME  the first value of that metadata, whatever the case of NAME
//
// Anything else, such as an authenticated user, comes from [Config.Fields]. New
// refuses rules that look at what a call does not have.
//
// # Client identity
//
// The client is the address of the socket's peer. Metadata is never trusted by
// default: only when the peer is in [Config.TrustedProxies] is x-forwarded-for
// read, from its end, up to the first address that is no trusted proxy. Port and
// zone are dropped; an IPv4-mapped address is the IPv4 one, and so is a public
// one under 64:ff9b::/96. A peer on a Unix socket is "unix", one without address
// "unknown". A trusted proxy that does not say whom it calls for, or names trusted
// proxies only, is the client itself, as "proxy:" and its address, which no allow
// list holds. The rule's key then folds the address,
// IPv6 to its /64 unless told otherwise (see [match.Fold]).
//
// # What a call holds
//
// A call takes its place of an in-flight limit until its handler has returned or
// panicked. One that a leaky bucket queues waits for its turn before the handler
// runs, but not beyond its deadline.
//
// # How a call is refused
//
//	by a limit or a ban            RESOURCE_EXHAUSTED
//	a store that failed closed     UNAVAILABLE
//	a key too long for any store   INVALID_ARGUMENT
//	a turn beyond the deadline     DEADLINE_EXCEEDED, without what follows
//
// The status has an ErrorInfo whose reason is one of the constants of this
// package, a RetryInfo with the time after which a lone caller is admitted (none
// when no waiting helps), and a QuotaFailure that names the rules. The trailer
// tells gRPC's own retries the same (grpc-retry-pushback-ms of gRPC proposal A6),
// and not to retry at all when the call's deadline is nearer.
//
// The limits are in the fields ratelimit and ratelimit-policy of
// draft-ietf-httpapi-ratelimit-headers-11: in the header of a call that is
// admitted; in the trailer of one that is refused, where they are part of its
// only block of headers. A header of its own would keep gRPC clients from
// retrying. Under an algorithm that counts in slots, the time that a client is told
// to wait may be longer than needed, and than w, by [ratelimit.Limit.MaxLate].
package latelygrpc
